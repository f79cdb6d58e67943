import { isolated, plural } from './common';

const list = new Intl.ListFormat('en');

const segmentsOf = (n: number) => plural(n, 'segment', 'segments');

/** Segments: conditions and lists of members that the rules of many flags share. */
export const segments = {
  title: 'Segments',
  text: 'Groups of users, such as beta testers or staff, that the rules of many flags share. A segment holds in all environments.',
  new: 'New segment',
  counted: ['segment', 'segments'] as const,
  none: 'No segment yet',
  noneText: 'Developers and admins of the tenant create segments.',
  noneFound: 'No segment matches',
  noneFoundText: 'Remove a filter, or search for something else.',
  clear: 'Clear the filters',
  search: 'Search segments',
  tag: 'Filter by tag',
  anyTag: 'Any tag',
  columns: {
    key: 'Segment',
    tags: 'Tags',
    rules: 'Rules',
    members: 'Members',
    usedBy: 'Used by',
    updated: 'Changed',
  },
  excluded: (n: number) => `${plural(n, 'excluded', 'excluded')}`,
  usedBy: (what: string) => (what ? `used by ${what}` : 'not used yet'),
  users: (n: number) => (n ? plural(n, 'flag or segment', 'flags or segments') : 'Not used'),
  create: {
    title: 'New segment',
    name: 'Name',
    nameHint: 'For people; the key if empty',
    key: 'Key',
    keyHint: 'Rules refer to it. It never changes.',
    description: 'Description',
    private: 'Private members',
    privateHint:
      'Only hashes of its members are kept: they can be checked and forgotten, but not listed. This never changes.',
    made: (key: string) => `${key} is created.`,
  },
  parts: 'Parts of the segment',
  tabs: { rules: 'Rules', members: 'Members', use: 'Used by', history: 'History', settings: 'Settings' },
  toSegments: 'To the segments',
  copyKey: (key: string) => `Copy the key ${key}`,
  rules: {
    text: 'Who matches one of the rules is in the segment, unless excluded.',
    none: 'No rules',
    noneText: 'Only its members are in the segment. Add a rule to have users in it by their attributes.',
  },
  effect: {
    flags: (environment: string, n: number) =>
      `This changes what ${plural(n, 'flag serves', 'flags serve')} in ${environment}.`,
    flagsIn: (counts: [string, number][]) =>
      `This changes what flags serve: ${list.format(counts.map(([environment, n]) => `${n} in ${environment}`))}.`,
    segments: (keys: string[]) =>
      `It changes who is in ${keys.length === 1 ? 'the segment' : 'the segments'} ${list.format(keys.map(isolated))}, too.`,
    none: 'No flag and no segment uses it yet.',
    user: (key: string, before: boolean, after: boolean) =>
      `${key ? isolated(key) : 'A user without a targeting key'} is ${before ? 'in it' : 'not in it'} now, and ${
        before === after ? 'stays so' : after ? 'will be' : 'will not be'
      }.`,
  },
  used: {
    title: 'Used by',
    text: 'The rules of flags and segments that refer to this segment.',
    summary: (flags: number, environments: number, segments: number) =>
      list.format([
        ...(flags
          ? [`${plural(flags, 'flag', 'flags')} in ${plural(environments, 'environment', 'environments')}`]
          : []),
        ...(segments ? [segmentsOf(segments)] : []),
      ]),
    none: 'Not used yet',
    noneText: 'Choose “is in segment” in a rule of a flag.',
    flag: 'Flag',
    segment: 'Segment',
    where: 'Where',
    everywhere: 'All environments',
    rulesIn: (environment: string, key: string) => `Rules of ${key} in ${environment}`,
  },
  members: {
    lists: { included: 'Included', excluded: 'Excluded' },
    list: 'List',
    counted: (name: string, n: string) => `${name}: ${n}`,
    texts: {
      included: 'These users are in the segment, whatever the rules say, unless they are excluded.',
      excluded: 'These users are not in the segment, whatever the rules say.',
    },
    kept: 'A member’s id stays in the history, also after the member is removed.',
    hashed: 'The segment is private: only hashes of its members are kept. They can be checked, but not listed.',
    member: 'Targeting key',
    actions: 'Actions',
    none: { included: 'Nobody is included by name', excluded: 'Nobody is excluded' },
    more: 'Show more members',
    add: 'Add members',
    addTo: { included: 'Add included members', excluded: 'Add excluded members' },
    removeSome: 'Remove members',
    removeFrom: { included: 'Remove included members', excluded: 'Remove excluded members' },
    remove: (member: string) => `Remove ${isolated(member)}`,
    removeTitle: (member: string) => `Remove ${isolated(member)}?`,
    removeText: {
      included: 'It is no longer included. A rule may still match it.',
      excluded: 'It is no longer excluded. A rule may match it then.',
    },
    removeButton: 'Remove',
    addButton: 'Add',
    keys: 'Targeting keys',
    keysHint: 'Separated by lines or commas. A list can be pasted.',
    key: (n: number) => `Targeting key ${n}`,
    file: 'CSV file',
    fileHint: 'One column without a header, in UTF-8',
    notText: 'must be UTF-8',
    nothing: 'Type a targeting key first',
    nothingToAdd: 'Type a targeting key, or choose a file first',
    done: (key: string, added: number, removed: number, unchanged: number) =>
      `${key}: ${list.format([
        ...(added ? [`${plural(added, 'member', 'members')} added`] : []),
        ...(removed ? [`${plural(removed, 'member', 'members')} removed`] : []),
        ...(unchanged || !(added + removed) ? [`${plural(unchanged, 'member', 'members')} unchanged`] : []),
      ])}.`,
  },
  check: {
    title: 'Who is in?',
    titleThen: 'Who was in?',
    member: { true: 'This user is in the segment', false: 'This user is not in the segment' },
    wasMember: { true: 'This user was in the segment', false: 'This user was not in the segment' },
    saved: 'Asks the saved rules and members.',
  },
  settings: {
    title: 'Settings',
    name: 'Name',
    description: 'Description',
    tags: 'Tags',
    details: 'Details',
    key: 'Key',
    created: 'Created',
    updated: 'Changed',
    version: 'Version',
    private: 'Private',
    yes: 'Yes',
  },
  forget: {
    title: 'Forget the members',
    text: 'Nobody can tell afterwards who was in the lists, and answers about earlier times count them as empty too.',
    open: 'Forget the members',
    ask: (key: string) => `Forget the members of ${key}?`,
    warning: 'Both lists become empty, now and in the past. This cannot be undone.',
    button: 'Forget',
  },
  remove: {
    title: 'Delete',
    text: 'A segment that a rule refers to cannot be deleted.',
    open: 'Delete the segment',
    ask: (key: string) => `Delete ${key}?`,
    warning: 'It is deleted with its rules and members. Its history stays, and it can be restored.',
    button: 'Delete',
    see: 'See where it is used',
  },
  deleted: {
    gone: 'There is no such segment',
    title: 'The segment was deleted',
    text: (who: string, when: string, reason: string) =>
      `By ${isolated(who)}, ${when}${reason && `: “${isolated(reason)}”`}`,
    back: 'Restore it',
    ask: (key: string) => `Restore ${key}?`,
    askText: 'The segment returns to its state before the deletion.',
  },
  history: {
    hint: 'Move through time, or choose a change, to see the segment as it was.',
    then: (version: number) => `The segment at version ${version}`,
    thenDeleted: 'This version deleted the segment.',
    same: 'The segment is as it was then.',
  },
  revert: {
    text: 'The segment returns to this state, with its rules and members. The history keeps the changes in between, so you can undo this too.',
  },
  /** What is wrong with what a flag depends on. */
  problems: {
    segment_missing: (key: string, environment: string) =>
      `In ${environment} its rules refer to the segment ${isolated(key)}, which does not exist: nobody is in it.`,
    segment_cycle: (key: string, environment: string) =>
      `In ${environment} its rules refer to the segment ${isolated(key)}, which refers to itself in a circle: nobody matches by it.`,
    prerequisite_missing: (key: string, environment: string) =>
      `In ${environment} it requires the flag ${isolated(key)}, which does not exist, so it counts as off.`,
    prerequisite_cycle: (key: string, environment: string) =>
      `In ${environment} it requires the flag ${isolated(key)}, which requires this one in a circle: that is never met.`,
    prerequisite_limit: (key: string, environment: string) =>
      `In ${environment} it requires the flag ${isolated(key)}, which requires too many others: that is never met.`,
  },
  see: (key: string) => `Segment ${isolated(key)}`,
  seeFlag: (key: string) => `Flag ${isolated(key)}`,
};
