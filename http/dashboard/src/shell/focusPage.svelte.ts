import { router } from '../router/router.svelte';

let shown: string | undefined; // the path of the last page, in any frame

/**
 * Moves the focus into the page that a person comes to, unless it is in a dialog or in a field of the header.
 * Call it when a frame starts.
 */
export function focusPage(page: () => HTMLElement | undefined): void {
  $effect(() => {
    const { path } = router;
    const came = shown !== undefined && (shown !== path || document.activeElement === document.body);
    shown = path;
    if (!came || document.activeElement?.closest('[role="dialog"], header input')) return;
    page()?.focus({ preventScroll: true });
  });
}
