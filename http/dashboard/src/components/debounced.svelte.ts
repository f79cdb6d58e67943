const pause = 250; // milliseconds without typing

/** A value that is typed, a moment after its last change. Call it at a component's start. */
export function debounced<T>(typed: () => T): () => T {
  let value = $state.raw(typed());
  $effect(() => {
    const next = typed();
    const timer = setTimeout(() => (value = next), pause);
    return () => clearTimeout(timer);
  });
  return () => value;
}
