import { SvelteSet } from 'svelte/reactivity';

/** The conflicts on the page. They say what others have changed, so that no notice repeats it. */
export const conflictsShown = new SvelteSet<object>();
