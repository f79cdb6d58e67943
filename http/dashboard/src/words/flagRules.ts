/** What a tenant demands of new flags and of changes. */
export const flagRules = {
  title: 'Flag rules',
  text: 'What new flags and changes of flags must meet in this tenant. Flags that exist stay as they are.',
  adminsOnly: 'Admins of the tenant change them.',
  naming: 'Keys of new flags',
  pattern: 'Pattern',
  patternHint: 'A regular expression (RE2) that matches the whole key. If empty, any key is accepted.',
  example: 'Example',
  exampleHint: 'A key that matches',
  hint: 'Hint',
  hintHint: 'Shown when a key does not match',
  reasons: 'Changes that need a reason',
  reasonsText:
    'Changes in these environments need a reason, and so do changes of the whole flag while it is on there. Switching a flag off never does.',
  owner: 'Owners',
  requireOwner: 'New flags need an owner',
  saved: 'The flag rules are saved.',
};
