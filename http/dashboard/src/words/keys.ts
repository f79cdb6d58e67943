import { isolated } from './common';

/** Evaluation keys. */
export const keys = {
  title: 'Keys',
  text: 'Keys with which browsers, phones and servers evaluate flags in one environment. A key needs no sign-in.',
  columns: {
    name: 'Key',
    kind: 'Kind',
    environment: 'Environment',
    origins: 'Origins',
    used: 'Last evaluation',
    ends: 'Expires',
    actions: 'Actions',
  },
  kinds: { browser: 'Browser', server: 'Server' },
  kindTexts: {
    browser: 'Public: for web pages and apps. It sees only flags that are marked as seen by browsers.',
    server: 'Secret: for your own servers. It evaluates all flags.',
  },
  signed: 'Signed contexts',
  edge: 'Edge',
  anyOrigin: 'Any',
  notUsed: 'None known',
  never: 'Never',
  ended: 'Expired',
  copy: (name: string) => `Copy the key ${isolated(name)}`,
  none: 'No key yet',
  noneText: 'A web page, an app or a server that evaluates flags needs one. Admins of the tenant create keys.',
  fields: {
    name: 'Name',
    nameHint: 'What it is for, such as Web shop',
    kind: 'Kind',
    environment: 'Environment',
    origins: 'Origins',
    originsHint:
      'Web pages that may use the key, such as https://app.example.com or https://*.example.com. Enter adds one. Without any, all may.',
    origin: (n: number) => `Origin ${n}`,
    signed: 'Signed contexts',
    signedHint: 'Your server signs who the user is, so that a page cannot claim to be another user.',
    edge: 'For an edge',
    edgeHint: 'Marks the key as one of an edge.',
    end: 'Expires',
    endHint: 'The key stops working at this time',
  },
  create: { open: 'New key', title: 'New key' },
  edit: {
    of: (name: string) => `Edit ${isolated(name)}`,
    title: 'Edit the key',
  },
  secret: {
    title: 'The key',
    key: 'Key',
    signingSecret: 'Signing secret',
    server: (name: string) =>
      `The key of ${isolated(name)} is shown only once. Put it where your server reads its secrets.`,
    browser: (name: string) =>
      `The key of ${isolated(name)} is public: it may be in the code of your page, and the list shows it again.`,
    signing:
      'The signing secret is shown only once. Put it where your server reads its secrets, and never into a page.',
    done: 'I have saved it',
    ask: {
      title: 'Close without the secret?',
      text: 'You have not copied it, and it is not shown again. Rotate the key to get a new one.',
      leave: 'Close without it',
      stay: 'Stay',
    },
  },
  rotate: {
    of: (name: string) => `Rotate ${isolated(name)}`,
    title: 'Rotate the key?',
    text: (name: string, signed: boolean) =>
      signed
        ? `${isolated(name)} gets a new signing secret, and stays the same key. The old secret works for another 24 hours.`
        : `${isolated(name)} gets a new key. The old one works for another 24 hours.`,
    endNow: 'End the old one now',
    endNowHint: 'Programs that still use it can no longer evaluate flags.',
    button: 'Rotate',
  },
  remove: {
    of: (name: string) => `Delete ${isolated(name)}`,
    title: 'Delete the key?',
    text: (name: string) =>
      `${isolated(name)} stops working at once. Programs that still use it can no longer evaluate flags.`,
    button: 'Delete',
  },
};
