import { createSubscriber } from 'svelte/reactivity';

// One clock for all components that show a time; it stops while there are none.
function ticking(every: number): () => void {
  return createSubscriber((tick) => {
    const timer = setInterval(tick, every);
    return () => clearInterval(timer);
  });
}

const minutes = ticking(60_000);
const moments = ticking(5_000);

/** The current time for relative times, which updates its readers. */
export function nowFor(at: string): number {
  const now = Date.now();
  if (Math.abs(now - Date.parse(at)) < 60_000) moments();
  else minutes();
  return now;
}
