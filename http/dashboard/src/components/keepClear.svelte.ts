/** Keeps the focused element above a bar that sticks to the bottom of its parent: when the focus moves, and when the bar grows. */
export function keepClear(bar: () => HTMLElement | undefined | null, height: () => number, parts = ['*']): void {
  $effect(() => {
    const element = bar();
    if (!element || !height()) return;
    const root = document.documentElement;
    root.style.scrollPaddingBottom = `calc(${height()}px + 2 * var(--space-4))`;
    const focused = document.activeElement;
    if (element.parentElement?.contains(focused) && !element.contains(focused)) {
      for (const part of parts) focused?.closest(part)?.scrollIntoView({ block: 'nearest' });
    }
    return () => (root.style.scrollPaddingBottom = '');
  });
}
