import { createMutation, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, at, type Place } from '../api/client';
import { asFailure } from '../api/failure';
import type { FlagChange } from './flag';
import { refreshFlags, switchFlag } from './flagChange';
import { reasonHeader } from './reason';

/** A change of many flags. */
export type BulkChange =
  | { kind: 'enable' | 'disable' | 'archive' | 'delete' }
  | { kind: 'project'; projectId: string | null }
  | { kind: 'owner'; owner: string | null }
  | { kind: 'tags'; add: string[]; remove: string[] };

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

// After a 429, it retries when the service says so. Tags are read and written again if the flag has changed meanwhile.
async function changeOne(place: Place, change: BulkChange, flagKey: string, reason: string): Promise<void> {
  const header = { ...at(place), ...reasonHeader(reason) };
  for (let left = tries - 1; ; left--) {
    try {
      return await makeOne(change, flagKey, header);
    } catch (error) {
      const { status, retryAfter } = asFailure(error);
      if ((status !== 429 && status !== 412) || !left) throw error;
      if (status === 429) await new Promise((resolve) => setTimeout(resolve, (retryAfter ?? 1) * 1000));
    }
  }
}

async function makeOne(change: BulkChange, flagKey: string, header: ReturnType<typeof at>): Promise<void> {
  const params = { path: { flagKey }, header };
  const update = (fields: FlagChange, version?: string | null) =>
    answer(
      api.PATCH('/api/v1/flags/{flagKey}', {
        params: { ...params, header: { ...header, ...(version && { 'If-Match': version }) } },
        body: fields,
      }),
    );
  switch (change.kind) {
    case 'enable':
    case 'disable':
      await answer(switchFlag(flagKey, change.kind === 'enable', header));
      return;
    case 'delete':
      await answer(api.DELETE('/api/v1/flags/{flagKey}', { params }));
      return;
    case 'archive':
      await update({ status: 'archived' });
      return;
    case 'project':
      await update({ projectId: change.projectId });
      return;
    case 'owner':
      await update({ owner: change.owner });
      return;
    case 'tags': {
      const { body: flag, headers } = await answer(api.GET('/api/v1/flags/{flagKey}', { params }));
      const left = flag.tags.filter((tag) => !change.remove.includes(tag) && !change.add.includes(tag));
      await update({ tags: [...left, ...change.add] }, headers.get('ETag'));
    }
  }
}
