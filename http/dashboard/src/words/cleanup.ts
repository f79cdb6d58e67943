/** The clean-up page. */
export const cleanup = {
  title: 'Clean-up',
  text: 'Flags that are no longer evaluated, and flags that have long served the same value to everyone. Replace them in code, then archive them.',
  columns: {
    flag: 'Flag',
    since: 'Last used or changed',
    replacement: 'Replace it in code by',
    users: 'Evaluated by',
    actions: 'Actions',
  },
  unusedText: 'No longer evaluated: remove it',
  differs: 'Environments serve different values',
  none: 'Nothing to clean up',
  noneText: 'This page lists flags that were not evaluated, or served the same value to everyone, for a long time.',
  archive: (key: string) => `Archive ${key}`,
  more: 'More flags',
  copy: (key: string) => `Copy the value of ${key}`,
};
