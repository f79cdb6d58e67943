import { exactly, isolated, plural } from './common';

/** What a revert of a tenant's flags does, or would do. */
export type RevertCounts = { reverted: unknown[]; restored: unknown[]; createdSince: unknown[]; failed: unknown[] };

/** The settings of a tenant, and the banner of a sandbox. */
export const tenant = {
  title: 'Settings',
  text: (name: string) => `Settings of ${isolated(name)}`,
  contact: 'Name and contact',
  name: 'Name',
  email: 'Email',
  emailHint: 'Of the contact; if empty, that of the person who created the tenant',
  contactName: 'Contact',
  saved: 'The settings are saved.',
  new: {
    title: 'Create a tenant',
    text: 'It has its own flags, people and environments. You become its admin.',
    name: 'Name of the tenant',
    sandbox: 'A sandbox: filled with demo flags, to try things out',
  },
  revert: {
    title: 'Revert all flags',
    text: 'Brings the flags back to their state at a time. Their history stays, so a revert can be reverted.',
    at: 'As they were at',
    environment: 'Revert in',
    everywhere: 'All environments',
    plan: 'Show what would change',
    ask: (time: string) => `Revert to ${exactly(time)}?`,
    noTime: 'Choose a time first',
    button: (n: number) => `Revert ${plural(n, 'flag', 'flags')}`,
    failed: 'These stay as they are',
    left: 'These could not be reverted',
    plannedWords,
    doneWords,
  },
  remove: {
    title: 'Delete the tenant',
    text: 'Its flags are not evaluated any more, and all its members lose access, at once.',
    open: 'Delete the tenant',
    ask: (name: string) => `Delete ${isolated(name)}?`,
    warning: 'All its flags, people and clients are gone at once, and calls for its flags will be errors.',
    confirm: (name: string) => `Type ${isolated(name)} to confirm`,
    button: 'Delete',
  },
  sandbox: {
    active: (end: string) => `This is a sandbox. It takes changes until ${exactly(end)}.`,
    ended: (end: string) => `This sandbox ended at ${exactly(end)} and takes no more changes.`,
    plan: 'Choose a plan to keep it',
    reset: 'Reset',
    ask: 'Reset the sandbox?',
    warning:
      'Flags, projects and environments become the demo data again. Members and clients stay, and history stays in the audit trail.',
    done: 'The sandbox is reset.',
  },
};

/** Describes what a revert would do: "12 flags change, 3 deleted flags come back." */
function plannedWords({ reverted, restored, createdSince, failed }: RevertCounts): string {
  return listed(
    'No flag has changed since then',
    [reverted.length - restored.length, 'flag changes', 'flags change'],
    [restored.length, 'deleted flag comes back', 'deleted flags come back'],
    [createdSince.length, 'flag that was created since stays', 'flags that were created since stay'],
    [failed.length, 'flag cannot be reverted', 'flags cannot be reverted'],
  );
}

/** Describes what a revert has done. */
function doneWords({ reverted, restored, createdSince, failed }: RevertCounts): string {
  return listed(
    'No flag was reverted',
    [reverted.length - restored.length, 'flag was reverted', 'flags were reverted'],
    [restored.length, 'deleted flag came back', 'deleted flags came back'],
    [createdSince.length, 'flag that was created since stayed', 'flags that were created since stayed'],
    [failed.length, 'flag could not be reverted', 'flags could not be reverted'],
  );
}

function listed(none: string, ...parts: [n: number, one: string, many: string][]): string {
  const some = parts.filter(([n]) => n).map(([n, one, many]) => plural(n, one, many));
  return `${some.join(', ') || none}.`;
}
