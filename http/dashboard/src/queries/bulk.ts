import { createMutation, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, at, type Place } from '../api/client';
import { asFailure } from '../api/failure';
import { refreshFlags, switchFlag } from './flagChange';
import { reasonHeader } from './reason';

export type BulkChange = 'enable' | 'disable' | 'delete';

type BulkWanted = {
  change: BulkChange;
  flags: string[];
  reason: string;
  /** Called after each flag with the number of processed flags, including refused ones. */
  progress: (over: number) => void;
  /** Aborting it stops further changes. */
  signal: AbortSignal;
};

/** A flag that was not changed, and why. */
export type BulkRefusal = { flag: string; failure: unknown };

const atOnce = 4;
const tries = 3;

/** The outcome of a bulk change: refused flags, and flags skipped after an abort. */
export type BulkOutcome = { refused: BulkRefusal[]; left: string[] };

/** Changes flags one by one, a few concurrently, in the environment where the person started. */
export function useBulkChange(place: () => Place) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: async ({ change, flags, reason, progress, signal }: BulkWanted): Promise<BulkOutcome> => {
      const there = place();
      const refused: BulkRefusal[] = [];
      const waiting = [...flags];
      let over = 0;
      const work = async () => {
        for (let flag = waiting.shift(); flag !== undefined; flag = waiting.shift()) {
          await changeOne(there, change, flag, reason).catch((failure: unknown) => refused.push({ flag, failure }));
          progress(++over);
          if (signal.aborted) return;
        }
      };
      await Promise.all(Array.from({ length: atOnce }, work));
      await refreshFlags(client, there);
      return { refused, left: waiting };
    },
  }));
}

// After a 429, it retries when the service says so.
async function changeOne(place: Place, change: BulkChange, flagKey: string, reason: string): Promise<void> {
  const header = { ...at(place), ...reasonHeader(reason) };
  for (let left = tries - 1; ; left--) {
    try {
      if (change === 'delete')
        await answer(api.DELETE('/api/v1/flags/{flagKey}', { params: { path: { flagKey }, header } }));
      else await answer(switchFlag(flagKey, change === 'enable', header));
      return;
    } catch (error) {
      const { status, retryAfter } = asFailure(error);
      if (status !== 429 || !left) throw error;
      await new Promise((resolve) => setTimeout(resolve, (retryAfter ?? 1) * 1000));
    }
  }
}
