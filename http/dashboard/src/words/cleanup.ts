/** Flags that can go. */
export const cleanup = {
  title: 'Clean-up',
  text: 'Flags that nobody asks for any longer, and flags that have served the same value to everyone for long. Replace them in code, then archive them.',
  columns: { flag: 'Flag', since: 'Last used or changed', replacement: 'Replace it in code by', users: 'Evaluated by' },
  unusedText: 'Nobody asks for it: take it out',
  differs: 'Environments serve different values',
  none: 'Nothing to clean up',
  noneText:
    'Flags come here that nobody has asked for, or that have served the same value to everyone, for a long time.',
  more: 'More flags',
  copy: (key: string) => `Copy the value of ${key}`,
};
