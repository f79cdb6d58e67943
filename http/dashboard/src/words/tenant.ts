import { exactly, plural } from './common';

/** What a revert of a tenant's flags does, or would do. */
export type RevertCounts = { reverted: unknown[]; restored: unknown[]; createdSince: unknown[]; failed: unknown[] };

/** The settings of a tenant, and the banner of a sandbox. */
export const tenant = {
  title: 'Settings',
  text: (name: string) => `Settings of ${name}`,
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
    nothing: 'No flag has changed since then.',
    button: (n: number) => `Revert ${plural(n, 'flag', 'flags')}`,
    failed: 'These stay as they are',
    done: 'Reverted',
    words: revertWords,
  },
  remove: {
    title: 'Delete the tenant',
    text: 'Its flags are not evaluated any more, and all its members lose access, at once.',
    open: 'Delete the tenant',
    ask: (name: string) => `Delete ${name}?`,
    warning: 'All its flags, people and clients are gone at once, and calls for its flags will be errors.',
    confirm: (name: string) => `Type ${name} to confirm`,
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

/** Describes a revert: "12 flags change, 3 come back, 1 that was created since stays." */
function revertWords({ reverted, restored, createdSince, failed }: RevertCounts): string {
  const [changed, back, since, left] = [
    reverted.length - restored.length,
    restored.length,
    createdSince.length,
    failed.length,
  ];
  const parts = [
    changed && `${plural(changed, 'flag changes', 'flags change')}`,
    back && `${plural(back, 'deleted flag comes', 'deleted flags come')} back`,
    since && `${plural(since, 'flag that was created since stays', 'flags that were created since stay')}`,
    left && `${plural(left, 'flag cannot be reverted', 'flags cannot be reverted')}`,
  ];
  return `${parts.filter(Boolean).join(', ')}.`;
}
