import { createSubscriber } from 'svelte/reactivity';

// One clock for all that show a time; it stands still while nobody does.
function ticking(every: number): () => void {
  return createSubscriber((tick) => {
    const timer = setInterval(tick, every);
    return () => clearInterval(timer);
  });
}

const minutes = ticking(60_000);
const moments = ticking(5_000);

/** The time, for whoever shows how long ago another was: what reads it follows it. */
export function nowFor(at: string): number {
  const now = Date.now();
  if (Math.abs(now - Date.parse(at)) < 60_000) moments();
  else minutes();
  return now;
}
