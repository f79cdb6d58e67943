import { isolated, plural } from './common';

const list = new Intl.ListFormat('en');

/** What a flag requires of other flags, and which flags require it. */
export const dependencies = {
  requires: 'Requires',
  requiresText: (environment: string) =>
    `In ${environment} the flag is off for a user unless each of these flags gives that user what is required.`,
  none: 'It requires no other flag',
  noneText: 'Add a flag that must be on, or off, for this one to be on.',
  noneRead: 'In this environment it depends on no other flag.',
  add: 'Add a flag',
  addHint: 'Type a key, or a part of a key or name',
  addButton: 'Add',
  unknown: 'There is no such flag.',
  own: 'A flag cannot require itself.',
  twice: 'It is required already.',
  several: 'Several flags match. Type more of the key.',
  must: (key: string) => `${isolated(key)} must be`,
  kinds: { serves: 'on and serve one of', off: 'off' },
  values: (key: string) => `Values of ${isolated(key)}`,
  others: 'Other values',
  othersHint: 'Enter adds a value that a rule serves.',
  notValue: 'must be a value of the type of the flag',
  remove: (key: string) => `Remove ${isolated(key)}`,
  requiresAll: 'What it requires in turn',
  requiresAllText: (environment: string) => `Each flag as it is in ${environment} now.`,
  mustBe: (what: string) => `must be ${what}`,
  mustServe: (values: string) => `on and serve ${values}`,
  on: 'on',
  off: 'off',
  missing: 'Missing',
  missingText: 'It does not exist, so it counts as off.',
  circle: 'Closes a circle: never met',
  requiredBy: 'Required by',
  requiredByText: 'Flags that are off, or on, by what this flag serves.',
  noDependents: 'No flag requires it',
  noDependentsText: 'Other flags can require it on their own pages.',
  requiresIt: (what: string) => `requires it to be ${what}`,
  toBe: (key: string, what: string) => `${isolated(key)} to be ${what}`,
  /** What a switch does to other flags. */
  follow: (n: number, on: boolean, switched = 1) =>
    `${plural(n, 'flag follows', 'flags follow')}: ${n === 1 ? 'it requires' : 'they require'} ${switched === 1 ? 'this one' : 'one of these'} to be ${on ? 'off' : 'on'}.`,
  indirect: 'Some of them require it through others.',
  inEnvironment: (environment: string) => `in ${environment}`,
  more: (n: number) => `and ${n} more`,
  requiredIn: (flags: number, environments: string[]) =>
    `Required by ${plural(flags, 'flag', 'flags')} in ${list.format(environments)}.`,
  see: 'See which',
  notDeleted: 'Other flags require it',
  notArchived: 'It cannot be archived: other flags require it.',
  variationText: 'It cannot be deleted: flags require this one to serve it.',
  notRemoved: 'Flags require this one to serve it',
};
