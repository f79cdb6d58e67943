import { createMutation, type QueryClient, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, at, type Place } from '../api/client';
import { keys } from './keys';
import { reasonHeader } from './reason';

/** The version that a change is based on, and its reason. */
export type ChangeBasis = { version: number; reason?: string };

/** Returns the headers of a change. */
export function changeHeaders(place: Place, { version, reason }: ChangeBasis) {
  return { ...at(place), 'If-Match': `"${version}"`, ...reasonHeader(reason) };
}

/** Returns the flag's version from a response's headers. A compressing proxy turns the tag into `W/"5"` or `"5-gzip"`. */
export const versionOf = (headers: Headers): number => Number(/\d+/.exec(headers.get('ETag') ?? '')?.[0] ?? 0);

/** Returns the version of a flag after a change. */
export async function versionAfter<T>(call: Parameters<typeof answer<T>>[0]): Promise<number> {
  return versionOf((await answer(call)).headers);
}

/** Reads flags again. Resolves when the page shows the new state. */
export function refreshFlags(client: QueryClient, place: Place): Promise<void> {
  return client.invalidateQueries({ queryKey: keys.tenantFlags(place.tenant) });
}

/** Changes a flag and reads flags again before it resolves. Throws the refusal. */
export function useFlagChange<T, R>(place: () => Place, change: (wanted: T) => Promise<R>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: change,
    onMutate: () => place(),
    onSettled: (_made, _error, _wanted, there) => refreshFlags(client, there ?? place()),
  }));
}

/** A request to switch a flag. It has its own place, because the person may open another page before it runs. */
export type SwitchRequest = {
  place: Place;
  key: string;
  on: boolean;
  reason?: string;
  /** Called with the version that is sent as If-Match, if any. */
  onVersion?: (version: number) => void;
};

/** Switches of all pages run one after the other, so that the last of two quick ones wins. */
export const switchScope = { id: 'switch' };

/** Switches a flag on or off, based on the version in the headers, if any. */
export function switchFlag(flagKey: string, on: boolean, header: ReturnType<typeof at | typeof changeHeaders>) {
  const call = { params: { path: { flagKey }, header } };
  return on ? api.POST('/api/v1/flags/{flagKey}/enable', call) : api.POST('/api/v1/flags/{flagKey}/disable', call);
}
