// Fields that accept a typed /. A closed switcher, which is a combobox, does not.
const fields = 'textarea, select, input:not([role="combobox"][aria-expanded="false"])';

/** Whether / is pressed as a shortcut, not typed. */
export function isSlashShortcut(event: KeyboardEvent): boolean {
  const typing = event.target instanceof HTMLElement && event.target.closest(fields);
  return event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
}
