import { createInfiniteQuery, createQuery, keepPreviousData } from '@tanstack/svelte-query';
import { api, at, body, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { type ChangeBasis, changeHeaders, useFlagChange } from './flagChange';
import { type Entry, historyPageSize, nextHistoryPage, nextVersionPage, versionPageSize } from './history';
import { keys } from './keys';

/** Reads a segment's history, newest first. */
export function useSegmentHistory(place: () => Place, key: () => string) {
  return createInfiniteQuery(() => ({
    queryKey: [...keys.segment(place().tenant, key()), 'history'],
    queryFn: ({ pageParam, signal }) => readHistory(place(), key(), pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: nextHistoryPage,
    structuralSharing: false,
  }));
}

/** Reads the newest changes since a version, up to one page. */
export function useSegmentSince(place: () => Place, key: () => string, version: () => number | undefined) {
  return createQuery(() => ({
    queryKey: [...keys.segment(place().tenant, key()), 'since', version()],
    queryFn: async ({ signal }) =>
      (await readHistory(place(), key(), 0, signal)).filter((entry) => entry.version > (version() ?? 0)),
    enabled: version() !== undefined,
    structuralSharing: false,
  }));
}

function readHistory(place: Place, segmentKey: string, offset: number, signal: AbortSignal): Promise<Entry[]> {
  return exactBody<Entry[]>(
    api.GET('/api/v1/segments/{segmentKey}/history', {
      params: { path: { segmentKey }, header: at(place), query: { limit: historyPageSize, offset } },
      parseAs: 'text',
      signal,
    }),
  );
}

/** Reads the versions of a segment, newest first. */
export function useSegmentVersions(place: () => Place, key: () => string) {
  return createInfiniteQuery(() => ({
    queryKey: [...keys.segment(place().tenant, key()), 'versions'],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET('/api/v1/segments/{segmentKey}/versions', {
          params: {
            path: { segmentKey: key() },
            header: at(place()),
            query: { limit: versionPageSize, offset: pageParam },
          },
          signal,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: nextVersionPage,
  }));
}

/** Reads a segment at a version. */
export function useSegmentVersion(place: () => Place, key: () => string, version: () => number) {
  return createQuery(() => ({
    queryKey: [...keys.segment(place().tenant, key()), 'version', version()],
    queryFn: ({ signal }) =>
      exactBody<Schemas['SegmentVersionBody']>(
        api.GET('/api/v1/segments/{segmentKey}/versions/{version}', {
          params: { path: { segmentKey: key(), version: version() }, header: at(place()) },
          parseAs: 'text',
          signal,
        }),
      ),
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  }));
}

/** Reads the differences between two versions of a segment. */
export function useSegmentDiff(place: () => Place, key: () => string, from: () => number, to: () => number) {
  return createQuery(() => ({
    queryKey: [...keys.segment(place().tenant, key()), 'diff', from(), to()],
    queryFn: async ({ signal }) => {
      const diff = await exactBody<Schemas['DiffBody']>(
        api.GET('/api/v1/segments/{segmentKey}/diff', {
          params: {
            path: { segmentKey: key() },
            header: at(place()),
            query: { from: String(from()), to: String(to()) },
          },
          parseAs: 'text',
          signal,
        }),
      );
      return diff.changes;
    },
    enabled: from() !== to(),
    staleTime: Infinity,
    structuralSharing: false,
  }));
}

/** Reverts a segment to a version. */
export function useRevertSegment(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ to, ...basis }: ChangeBasis & { to: number }) =>
    body(
      api.POST('/api/v1/segments/{segmentKey}/revert', {
        params: { path: { segmentKey: key() }, header: changeHeaders(place(), basis) },
        body: { version: to },
      }),
    ),
  );
}
