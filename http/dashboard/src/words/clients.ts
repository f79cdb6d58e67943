import { isolated } from './common';

/** OAuth clients. */
export const clients = {
  title: 'Clients',
  text: 'Programs that sign in by themselves, with OAuth client credentials, and do what their scopes say. To evaluate flags alone, a program needs a key.',
  columns: { name: 'Client', scopes: 'Scopes', used: 'Last evaluation', created: 'Created', actions: 'Actions' },
  notUsed: 'None in 30 days',
  scopes: {
    'flags:evaluate': 'Evaluate flags',
    'flags:sync': 'Evaluate flags in process',
    'flags:read': 'Read flags',
    'flags:write': 'Change flags',
    'projects:read': 'Read projects',
    'projects:write': 'Change projects',
  },
  adminsOnly: 'For admins',
  adminsOnlyText: 'Admins of the tenant see its clients, and give them secrets.',
  none: 'No client yet',
  noneText: 'A program that changes flags needs one. Its secret is shown once, when it is created.',
  create: {
    open: 'New client',
    title: 'New client',
    name: 'Name',
    nameHint: 'What it is for, such as Checkout backend',
    scopes: 'Scopes',
  },
  secret: {
    title: 'The secret',
    text: (name: string) =>
      `The secret of ${isolated(name)} is shown only once. Put it where your program reads its secrets.`,
    id: 'Client ID',
    secret: 'Client secret',
    done: 'I have saved it',
    ask: {
      title: 'Close without the secret?',
      text: 'You have not copied it, and it is not shown again. Rotate the secret to get a new one.',
      leave: 'Close without it',
      stay: 'Stay',
    },
  },
  rotate: {
    of: (name: string) => `Rotate the secret of ${isolated(name)}`,
    title: 'Rotate the secret?',
    text: (name: string) => `${isolated(name)} gets a new secret. The current one stays valid for another 24 hours.`,
    button: 'Rotate',
  },
  remove: {
    of: (name: string) => `Delete ${isolated(name)}`,
    title: 'Delete the client?',
    text: (name: string) =>
      `The tokens of ${isolated(name)} stop working at once. Whatever still uses it can no longer evaluate flags.`,
    button: 'Delete',
  },
};
