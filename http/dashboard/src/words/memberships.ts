import { isolated } from './common';

/** Questions about tenants that others added the person to. */
export const memberships = {
  addition: {
    text: (by: string, tenant: string) =>
      `${isolated(by)} added you to ${isolated(tenant)}. Until you answer, its admins see nothing of how you use the service.`,
    stay: 'Stay',
    leave: 'Leave',
  },
  invitation: {
    text: (by: string, tenant: string) => `${isolated(by)} invites you to ${isolated(tenant)}.`,
    stay: 'Accept',
    leave: 'Decline',
  },
};
