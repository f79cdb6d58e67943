import { createMutation, type QueryClient, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, at, type Place } from '../api/client';
import { keys } from './keys';
import { reasonHeader } from './reason';

/** On which version a change stands, and why it is made. */
export type ChangeBasis = { version: number; reason?: string };

/** The headers of a change. */
export function changeHeaders(place: Place, { version, reason }: ChangeBasis) {
  return { ...at(place), 'If-Match': `"${version}"`, ...reasonHeader(reason) };
}

/** The version of a flag that an answer has. A proxy that compresses makes its tag `W/"5"` or `"5-gzip"`. */
export const versionOf = (headers: Headers): number => Number(/\d+/.exec(headers.get('ETag') ?? '')?.[0] ?? 0);

/** The version of a flag that a change made. */
export async function versionAfter<T>(call: Parameters<typeof answer<T>>[0]): Promise<number> {
  return versionOf((await answer(call)).headers);
}

/** Brings all readings of flags up to date. It is over when what is shown is new. */
export function refreshFlags(client: QueryClient, place: Place): Promise<void> {
  return client.invalidateQueries({ queryKey: keys.tenantFlags(place.tenant) });
}

/** A change of one flag. What it was refused for is thrown; in either case readings are brought up to date, before it is over. */
export function useFlagChange<T, R>(place: () => Place, change: (wanted: T) => Promise<R>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: change,
    onMutate: () => place(),
    onSettled: (_made, _error, _wanted, there) => refreshFlags(client, there ?? place()),
  }));
}

/** A switch, with the place where it was asked for: it may wait for its turn while the person goes elsewhere. */
export type Switched = {
  place: Place;
  key: string;
  on: boolean;
  reason?: string;
  /** Is called with the version that goes along as If-Match, where one does. */
  onVersion?: (version: number) => void;
};

/** Switches go one after the other, on whichever page, so that the last of two quick ones stands. */
export const switchScope = { id: 'switch' };

/** Switches a flag on or off: on a version where the headers name one. */
export function switchFlag(flagKey: string, on: boolean, header: ReturnType<typeof at | typeof changeHeaders>) {
  const call = { params: { path: { flagKey }, header } };
  return on ? api.POST('/api/v1/flags/{flagKey}/enable', call) : api.POST('/api/v1/flags/{flagKey}/disable', call);
}
