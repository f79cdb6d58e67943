import { isolated } from './common';

/** The members of a tenant. */
export const members = {
  title: 'Members',
  text: 'A person who is added gets an invitation by mail, and is pending until they sign in.',
  columns: { member: 'Member', role: 'Role', seen: 'Last seen', actions: 'Actions' },
  roles: { admin: 'Admin', developer: 'Developer', viewer: 'Viewer' },
  roleHint: 'Viewers read, developers change flags and projects, admins also members, clients and environments.',
  roleOf: (name: string) => `Role of ${isolated(name)}`,
  pending: 'Pending',
  pendingText: 'They have not signed in with the address or accepted the invitation yet',
  you: 'You',
  demote: {
    ownTitle: 'Change your own role?',
    title: 'Take the admin role away?',
    text: (name: string, role: string) =>
      `New role of ${isolated(name)}: ${role}. Only another admin can give the admin role back.`,
    button: 'Change the role',
  },
  add: {
    open: 'Add member',
    title: 'Add a member',
    email: 'Email',
    role: 'Role',
    button: 'Add',
    left: {
      text: 'This person left the tenant or declined to join. You can invite them again; they join once they accept.',
      button: 'Invite again',
    },
  },
  remove: {
    of: (name: string) => `Remove ${isolated(name)}`,
    title: 'Remove a member?',
    text: (name: string) => `${isolated(name)} can no longer see or change anything here, at once.`,
    button: 'Remove',
  },
  leave: {
    title: 'Leave this tenant?',
    text: 'You can no longer see or change anything here, until an admin invites you again and you accept.',
    button: 'Leave',
  },
};
