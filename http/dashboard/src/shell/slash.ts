// Fields in which / is typed. A closed switcher, which is a combobox, is none.
const fields = 'textarea, select, input:not([role="combobox"][aria-expanded="false"])';

/** Whether / is pressed, and not typed. */
export function isSlashShortcut(event: KeyboardEvent): boolean {
  const typing = event.target instanceof HTMLElement && event.target.closest(fields);
  return event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
}
