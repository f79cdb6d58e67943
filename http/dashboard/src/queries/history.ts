import { createInfiniteQuery, createQuery, keepPreviousData } from '@tanstack/svelte-query';
import { api, at, body, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { type ChangeBasis, changeHeaders, useFlagChange } from './flagChange';
import { keys } from './keys';

/** An entry of a flag's history, or of a segment's, which has no environment. */
export type Entry = Omit<Schemas['HistoryEntry'], 'action' | 'environment'> & {
  action: string;
  environment?: string | null;
};
export type FlagAtVersion = Schemas['VersionBody'];

/** The number of entries in a page. */
export const historyPageSize = 50;

/** Returns the offset of the page after these, if there is one. */
export const nextHistoryPage = (last: Entry[], pages: Entry[][]): number | undefined =>
  last.length < historyPageSize ? undefined : pages.reduce((sum, page) => sum + page.length, 0);

/** Reads a flag's history, newest first, with the changes of what it depended on if these are asked for. */
export function useHistory(place: () => Place, key: () => string, dependencies = () => false) {
  return createInfiniteQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'history', dependencies()],
    queryFn: async ({ pageParam, signal }) =>
      readHistory(place().tenant, key(), { offset: pageParam, dependencies: dependencies() || undefined }, signal),
    initialPageParam: 0,
    getNextPageParam: nextHistoryPage,
    structuralSharing: false,
  }));
}

/** Reads the newest changes since a version, up to one page. */
export function useSince(place: () => Place, key: () => string, version: () => number | undefined) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'since', version()],
    queryFn: async ({ signal }) =>
      (await readHistory(place().tenant, key(), {}, signal)).filter((entry) => entry.version > (version() ?? 0)),
    enabled: version() !== undefined,
    structuralSharing: false,
  }));
}

/** Reads entries of a flag's history, newest first. */
export function readHistory(
  tenant: string,
  key: string,
  part: { offset?: number; limit?: number; dependencies?: boolean },
  signal: AbortSignal,
): Promise<Entry[]> {
  return exactBody<Entry[]>(
    api.GET('/api/v1/flags/{flagKey}/history', {
      params: {
        path: { flagKey: key },
        header: { 'X-Tenant-ID': tenant },
        query: { limit: historyPageSize, ...part },
      },
      parseAs: 'text',
      signal,
    }),
  );
}

const mostMarks = 500; // changes in a chart

/** Reads the newest changes of a flag since a time, the newest first. */
export function useChangesSince(place: () => Place, key: () => string, from: () => string | undefined) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'changes', from()],
    queryFn: ({ signal }) =>
      exactBody<Entry[]>(
        api.GET('/api/v1/flags/{flagKey}/history', {
          params: { path: { flagKey: key() }, header: at(place()), query: { from: from(), limit: mostMarks } },
          parseAs: 'text',
          signal,
        }),
      ),
    enabled: from() !== undefined,
    structuralSharing: false,
  }));
}

/** The number of versions in a page. */
export const versionPageSize = 1000;

export type VersionLine = Pick<Schemas['VersionEntry'], 'version' | 'timestamp' | 'userName'> & { action: string };

/** Returns the offset of the page after these, if there is one. */
export const nextVersionPage = (last: VersionLine[], pages: VersionLine[][]): number | undefined =>
  last.length < versionPageSize ? undefined : pages.length * versionPageSize;

/** Reads the versions of a flag, newest first. */
export function useVersions(place: () => Place, key: () => string) {
  return createInfiniteQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'versions'],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET('/api/v1/flags/{flagKey}/versions', {
          params: {
            path: { flagKey: key() },
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

/** The query of a flag at a version. */
export function readVersion(place: Place, key: string, version: number | undefined) {
  return {
    queryKey: [...keys.flag(place, key), 'version', version],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      exactBody<FlagAtVersion>(
        api.GET('/api/v1/flags/{flagKey}/versions/{version}', {
          params: { path: { flagKey: key, version: version! }, header: at(place) },
          parseAs: 'text',
          signal,
        }),
      ),
    staleTime: Infinity,
    structuralSharing: false as const,
  };
}

/** Reads a flag at a version. */
export function useVersion(place: () => Place, key: () => string, version: () => number | undefined) {
  return createQuery(() => ({
    ...readVersion(place(), key(), version()),
    enabled: version() !== undefined,
    placeholderData: keepPreviousData,
  }));
}

/** Reads the differences between two versions of a flag. */
export function useDiff(place: () => Place, key: () => string, from: () => number | undefined, to: () => number) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'diff', from(), to()],
    queryFn: async ({ signal }) => {
      const diff = await exactBody<Schemas['DiffBody']>(
        api.GET('/api/v1/flags/{flagKey}/diff', {
          params: {
            path: { flagKey: key() },
            header: at(place()),
            query: { from: String(from()), to: String(to()) },
          },
          parseAs: 'text',
          signal,
        }),
      );
      return diff.changes;
    },
    enabled: from() !== undefined && from() !== to(),
    staleTime: Infinity,
    structuralSharing: false,
  }));
}

/** Reverts a flag to a version. */
export function useRevert(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ to, ...basis }: ChangeBasis & { to: number }) =>
    body(
      api.POST('/api/v1/flags/{flagKey}/revert', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
        body: { version: to },
      }),
    ),
  );
}
