const pause = 250; // milliseconds without typing

/** Returns a value a moment after its last change. Call it when a component starts. */
export function debounced<T>(typed: () => T): () => T {
  let value = $state.raw(typed());
  $effect(() => {
    const next = typed();
    const timer = setTimeout(() => (value = next), pause);
    return () => clearTimeout(timer);
  });
  return () => value;
}
