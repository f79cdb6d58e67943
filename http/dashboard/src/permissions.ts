/** A person's role in a tenant. */
export type Role = 'viewer' | 'developer' | 'admin';
/** A person's role on the platform. */
export type PlatformRole = 'viewer' | 'admin' | 'super_user';

// Each role may do what the earlier ones may.
const roles: Role[] = ['viewer', 'developer', 'admin'];
const platformRoles: PlatformRole[] = ['viewer', 'admin', 'super_user'];

/** The least role in a tenant that may do something. All members read and evaluate. What a role may not do, no page offers.
 *  In production a change needs a verified address, too: a page offers it all the same, and then the mail that verifies. */
const tenantActs = {
  changeFlags: 'developer',
  forgetMembers: 'admin',
  changeProjects: 'developer',
  changeEnvironments: 'admin',
  changeFlagRules: 'admin',
  changeMembers: 'admin',
  changeTenant: 'admin',
  removeTenant: 'admin',
  manageClients: 'admin',
  manageKeys: 'admin',
  changePlan: 'admin',
  readFacts: 'admin',
} satisfies Record<string, Role>;

/** The least platform role for each action. */
const platformActs = {
  readTenants: 'viewer',
  readPeople: 'admin',
  readTrail: 'admin',
  readService: 'admin',
  changePeople: 'super_user',
  manageInvitations: 'super_user',
} satisfies Record<string, PlatformRole>;

export type TenantAct = keyof typeof tenantActs;
export type PlatformAct = keyof typeof platformActs;

/** Whether a role in a tenant, or none, permits an action. */
export const roleMay = (role: Role | null | undefined, act: TenantAct): boolean =>
  !!role && roles.indexOf(role) >= roles.indexOf(tenantActs[act]);

/** Whether a platform role, or none, permits an action. */
export const platformRoleMay = (role: PlatformRole | null | undefined, act: PlatformAct): boolean =>
  !!role && platformRoles.indexOf(role) >= platformRoles.indexOf(platformActs[act]);
