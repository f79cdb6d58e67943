import {
  createInfiniteQuery,
  createMutation,
  createQueries,
  createQuery,
  useQueryClient,
} from '@tanstack/svelte-query';
import { answer, api, at, body, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { Failure } from '../api/failure';
import type { Context } from './explanation';
import { type ChangeBasis, changeHeaders, refreshFlags, useFlagChange, versionAfter } from './flagChange';
import { keys } from './keys';
import { reasonHeader } from './reason';

export type Segment = Schemas['SegmentBody'];
export type NewSegment = Schemas['CreateSegmentBody'];
export type SegmentChange = Schemas['UpdateSegmentBody'];
export type SegmentRuleChange = Schemas['SegmentRuleChange'];
export type SegmentUser = Schemas['SegmentUserBody'];
export type SegmentCheck = Schemas['SegmentCheckBody'];
export type MemberList = Schemas['SegmentMembersBody']['list'];
export type MembersChanged = Schemas['MembersChangedBody'];

/** Reads the segments of a tenant by key. */
export function useSegments(place: () => Place) {
  return createQuery(() => ({
    queryKey: [...keys.segments(place().tenant), 'list'],
    queryFn: ({ signal }) => body(api.GET('/api/v1/segments', { params: { header: at(place()) }, signal })),
  }));
}

export function useSegment(place: () => Place, key: () => string) {
  return createQuery(() => ({
    queryKey: keys.segment(place().tenant, key()),
    queryFn: ({ signal }) =>
      exactBody<Segment>(
        api.GET('/api/v1/segments/{segmentKey}', {
          params: { path: { segmentKey: key() }, header: at(place()) },
          parseAs: 'text',
          signal,
        }),
      ),
    structuralSharing: false,
  }));
}

const usersOf = ({ tenant, environment }: Place, segmentKey: string) => ({
  queryKey: [...keys.segment(tenant, segmentKey), 'users'],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    body(
      api.GET('/api/v1/segments/{segmentKey}/flags', {
        params: { path: { segmentKey }, header: at({ tenant, environment }) },
        signal,
      }),
    ),
});

/** Reads the rules that refer to a segment. */
export function useSegmentUsers(place: () => Place, key: () => string) {
  return createQuery(() => usersOf(place(), key()));
}

/** Reads the rules that refer to a segment, directly or through other segments. */
export function useSegmentUsersInTurn(place: () => Place, key: () => string) {
  const client = useQueryClient();
  return createQuery(() => {
    const [there, root] = [place(), key()];
    return {
      queryKey: [...keys.segments(there.tenant), 'users in turn', root],
      queryFn: async (): Promise<SegmentUser[]> => {
        const seen = new Map<string, SegmentUser[]>();
        for (let level = [root]; level.length;) {
          const found = await Promise.all(
            level.map(async (key) => [key, await client.fetchQuery(usersOf(there, key))] as const),
          );
          for (const [key, users] of found) seen.set(key, users);
          const next = found.flatMap(([, users]) => users.flatMap(({ segmentKey }) => segmentKey ?? []));
          level = [...new Set(next)].filter((key) => !seen.has(key));
        }
        return [...seen.values()].flat();
      },
    };
  });
}

/** Reads the rules that refer to several segments. */
export function useUsersOfSegments(place: () => Place, segmentKeys: () => string[]) {
  return createQueries(() => ({ queries: segmentKeys().map((key) => usersOf(place(), key)) }));
}

const memberPageSize = 100; // members in a page

/** Reads a list of members in order, unless the segment is private. */
export function useMembers(
  place: () => Place,
  segment: () => Pick<Segment, 'key' | 'private'>,
  list: () => MemberList,
) {
  return createInfiniteQuery(() => ({
    enabled: !segment().private,
    queryKey: [...keys.segment(place().tenant, segment().key), 'members', list()],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET('/api/v1/segments/{segmentKey}/members', {
          params: {
            path: { segmentKey: segment().key },
            header: at(place()),
            query: { list: list(), limit: memberPageSize, offset: pageParam },
          },
          signal,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (last: string[], pages: string[][]) =>
      last.length < memberPageSize ? undefined : pages.length * memberPageSize,
  }));
}

/** Asks whether a user is in a segment: now, as it was at a version, or with other rules. */
export function useCheck(
  place: () => Place,
  key: () => string,
  context: () => Context | undefined,
  version: () => number | undefined = () => undefined,
  rules: () => SegmentRuleChange[] | undefined = () => undefined,
) {
  return createQuery<SegmentCheck>(() => ({
    queryKey: [
      ...keys.segment(place().tenant, key()),
      'check',
      JSON.stringify(rules()),
      version(),
      place().environment,
      JSON.stringify(context()),
    ],
    queryFn: ({ signal }) =>
      exactBody<SegmentCheck>(
        api.POST('/api/v1/segments/{segmentKey}/check', {
          params: { path: { segmentKey: key() }, header: at(place()), query: { version: version() } },
          body: { ...context(), environment: place().environment, rules: rules() },
          parseAs: 'text',
          signal,
        }),
      ),
    enabled: context() !== undefined,
    placeholderData: (before, query) => (query?.queryKey.at(-3) === version() ? before : undefined),
    structuralSharing: false,
  }));
}

export function useCreateSegment(place: () => Place) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (segment: NewSegment) =>
      body(api.POST('/api/v1/segments', { params: { header: at(place()) }, body: segment })),
    onMutate: place,
    onSuccess: (_made, _segment, { tenant }) => client.invalidateQueries({ queryKey: keys.segments(tenant) }),
  }));
}

export function useUpdateSegment(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ fields, ...basis }: ChangeBasis & { fields: SegmentChange }) =>
    versionAfter(
      api.PATCH('/api/v1/segments/{segmentKey}', {
        params: { path: { segmentKey: key() }, header: changeHeaders(place(), basis) },
        body: fields,
      }),
    ),
  );
}

export function useSaveSegmentRules(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ rules, ...basis }: ChangeBasis & { rules: SegmentRuleChange[] }) =>
    versionAfter(
      api.PUT('/api/v1/segments/{segmentKey}/rules', {
        params: { path: { segmentKey: key() }, header: changeHeaders(place(), basis) },
        body: { rules },
      }),
    ),
  );
}

/** Deletes a segment. Its history stays. */
export function useDeleteSegment(place: () => Place, key: () => string) {
  return useFlagChange(place, (basis: ChangeBasis) =>
    answer(
      api.DELETE('/api/v1/segments/{segmentKey}', {
        params: { path: { segmentKey: key() }, header: changeHeaders(place(), basis) },
      }),
    ),
  );
}

/** Forgets the members of a private segment, now and in the past. */
export function useForgetMembers(place: () => Place, key: () => string) {
  return useFlagChange(place, (basis: ChangeBasis) =>
    versionAfter(
      api.POST('/api/v1/segments/{segmentKey}/forget', {
        params: { path: { segmentKey: key() }, header: changeHeaders(place(), basis) },
      }),
    ),
  );
}

export type MembersWanted = {
  list: MemberList;
  reason: string;
  add?: string[];
  remove?: string[];
  /** The lines of a CSV file to add. */
  csv?: string[];
};

const mostMembers = 10_000; // in a call

/** Adds or removes members, in as many calls as they need. Other people's changes of members do not conflict with it. */
export function useChangeMembers(place: () => Place, key: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: async ({ list, reason, add = [], remove = [], csv = [] }: MembersWanted) => {
      const params = { path: { segmentKey: key() }, header: { ...at(place()), ...reasonHeader(reason) } };
      const change = (sent: Schemas['SegmentMembersBody']) =>
        body(api.POST('/api/v1/segments/{segmentKey}/members', { params, body: sent }));
      const calls = [
        ...partsOf(add).map((part) => () => change({ list, add: part })),
        ...partsOf(remove).map((part) => () => change({ list, remove: part })),
        ...partsOf(csv).map(
          (part, i) => () =>
            body(
              api.POST('/api/v1/segments/{segmentKey}/members', {
                params: { ...params, query: { list } },
                headers: { 'Content-Type': 'text/csv' },
                body: part.join('\n'),
                bodySerializer: (text) => text as string,
              }),
            ).catch((error: unknown) => {
              throw ofFile(error, i * mostMembers);
            }),
        ),
      ];
      const sum: MembersChanged = { added: 0, removed: 0, unchanged: 0 };
      for (const call of calls) {
        const { added, removed, unchanged } = await call();
        sum.added += added;
        sum.removed += removed;
        sum.unchanged += unchanged;
      }
      return sum;
    },
    onMutate: place,
    onSettled: (_sum, _error, _wanted, there) => refreshFlags(client, there ?? place()),
  }));
}

// Returns the refusal of a part of a file as one of the file, with its first bad line.
function ofFile(error: unknown, linesBefore: number): unknown {
  if (!(error instanceof Failure)) return error;
  const [[field, text] = ['', '']] = Object.entries(error.fields);
  const [, i] = /^add\[(\d+)\]$/.exec(field) ?? [];
  const [, line = Number(i) + 1, what = text] = /^line (\d+): (.*)$/.exec(text) ?? [];
  if (!text || Number.isNaN(Number(line))) return error;
  return new Failure(error.status, { errors: { csv: `line ${Number(line) + linesBefore}: ${what}` } });
}

function partsOf(all: string[]): string[][] {
  const parts: string[][] = [];
  for (let i = 0; i < all.length; i += mostMembers) parts.push(all.slice(i, i + mostMembers));
  return parts;
}
