import {
  createInfiniteQuery,
  createMutation,
  createQueries,
  createQuery,
  keepPreviousData,
  type QueryClient,
  useQueryClient,
} from '@tanstack/svelte-query';
import { answer, api, at, body, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';
import { reasonHeader } from './reason';

export type FlagDetail = Schemas['FlagDetail'];
export type FlagChange = Schemas['UpdateFlagBody'];
export type FlagType = FlagDetail['type'];
export type Variation = Schemas['VariationBody'];
export type VariationChange = Schemas['UpdateVariationBody'];
export type Rules = Schemas['RulesBody'];
export type Rule = Schemas['RuleBody'];
export type NewRule = Schemas['NewRuleBody'];
export type Condition = Schemas['ConditionBody'];
export type Operator = Condition['op'];
export type Serve = Schemas['ServeBody'];
export type Entry = Schemas['HistoryEntry'];
export type FlagAtVersion = Schemas['VersionBody'];
/** A flag in one environment. */
export type FlagInEnvironment = Schemas['FlagInEnvironment'];
export type Change = Schemas['ChangeBody'];
export type Evaluation = Schemas['EvaluationBody'];
export type Explanation = Schemas['ExplanationBody'];
export type Context = Schemas['ContextBody'];

/** On which version a change stands, and why it is made. */
export type ChangeBasis = { version: number; reason?: string };

const text = { parseAs: 'text' } as const;

/** The headers of a change. */
function changeHeaders(place: Place, { version, reason }: ChangeBasis) {
  return { ...at(place), 'If-Match': `"${version}"`, ...reasonHeader(reason) };
}

function readFlag(place: Place, key: string) {
  return {
    queryKey: keys.flag(place, key),
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      exactBody<FlagDetail>(
        api.GET('/api/v1/flags/{flagKey}', {
          params: { path: { flagKey: key }, header: at(place) },
          ...text,
          signal,
        }),
      ),
    structuralSharing: false as const,
  };
}

export function useFlag(place: () => Place, key: () => string) {
  return createQuery(() => readFlag(place(), key()));
}

/** A flag in several environments, in their order. */
export function useFlagIn(places: () => Place[], key: () => string) {
  return createQueries(() => ({ queries: places().map((place) => readFlag(place, key())) }));
}

/** The rules of a flag in an environment, with what those get whom none matches. */
export function useRules(place: () => Place, key: () => string) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'rules'],
    queryFn: ({ signal }: { signal: AbortSignal }) => readRules(place(), key(), signal),
    structuralSharing: false,
  }));
}

export type VersionedRules = Rules & { version: number };

// The rules with the version that they were read at.
async function readRules(place: Place, key: string, signal: AbortSignal): Promise<VersionedRules> {
  let version = 0;
  const rules = await exactBody<Rules>(
    api
      .GET('/api/v1/flags/{flagKey}/rules', {
        params: { path: { flagKey: key }, header: at(place) },
        ...text,
        signal,
      })
      .then((got) => {
        version = versionOf(got.response.headers);
        return got;
      }),
  );
  return { ...rules, version };
}

const versionOf = (headers: Headers): number => Number(headers.get('ETag')?.replaceAll('"', '') ?? 0);

// The version of a flag that a change made.
async function versionAfter<T>(call: Parameters<typeof answer<T>>[0]): Promise<number> {
  return versionOf((await answer(call)).headers);
}

const historyPageSize = 50; // of a history are read at once

/** A flag's history, the newest entries first. */
export function useHistory(place: () => Place, key: () => string) {
  return createInfiniteQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'history'],
    queryFn: async ({ pageParam, signal }) => readHistory(place(), key(), pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: (last: Entry[], pages: Entry[][]) =>
      last.length < historyPageSize ? undefined : pages.reduce((sum, page) => sum + page.length, 0),
    structuralSharing: false,
  }));
}

/** What has been changed since a version, by whomever, the newest first: as much of it as is read at once. */
export function useSince(place: () => Place, key: () => string, version: () => number | undefined) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'since', version()],
    queryFn: async ({ signal }) =>
      (await readHistory(place(), key(), 0, signal)).filter((entry) => entry.version > (version() ?? 0)),
    enabled: version() !== undefined,
    structuralSharing: false,
  }));
}

/** Entries of a flag's history, the newest first. */
export function readHistory(
  place: Place,
  key: string,
  offset: number,
  signal: AbortSignal,
  limit = historyPageSize,
): Promise<Entry[]> {
  return exactBody<Entry[]>(
    api.GET('/api/v1/flags/{flagKey}/history', {
      params: {
        path: { flagKey: key },
        header: { 'X-Tenant-ID': place.tenant },
        query: { limit, offset },
      },
      ...text,
      signal,
    }),
  );
}

const versionPageSize = 1000; // are read at once

export type VersionLine = Schemas['VersionEntry'];

/** The versions of a flag, the newest first. */
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
    getNextPageParam: (last: VersionLine[], pages: VersionLine[][]) =>
      last.length < versionPageSize ? undefined : pages.length * versionPageSize,
  }));
}

/** A flag as it was at a version. */
export function useVersion(place: () => Place, key: () => string, version: () => number | undefined) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'version', version()],
    queryFn: ({ signal }) =>
      exactBody<FlagAtVersion>(
        api.GET('/api/v1/flags/{flagKey}/versions/{version}', {
          params: { path: { flagKey: key(), version: version()! }, header: at(place()) },
          ...text,
          signal,
        }),
      ),
    enabled: version() !== undefined,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  }));
}

/** What differs between two versions of a flag. */
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
          ...text,
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

/** A moment of the past: a time, or a version of a flag. */
export type Moment = { at?: string; version?: number };

/** What a flag serves to somebody, and why: now, or what it served at a moment. */
export function useExplained(
  place: () => Place,
  key: () => string,
  context: () => Context | undefined,
  moment: () => Moment = () => ({}),
) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'explained', moment(), JSON.stringify(context())],
    queryFn: ({ signal }) =>
      exactBody<Evaluation>(
        api.POST('/api/v1/flags/{flagKey}/evaluate', {
          params: { path: { flagKey: key() }, header: at(place()), query: { explain: true, ...moment() } },
          body: { ...context(), environment: place().environment },
          ...text,
          signal,
        }),
      ),
    enabled: context() !== undefined,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  }));
}

/** Brings all readings of flags up to date. It is over when what is shown is new. */
export function refreshFlags(client: QueryClient, place: Place): Promise<void> {
  return client.invalidateQueries({ queryKey: keys.tenantFlags(place.tenant) });
}

/** A change of one flag. What it was refused for is thrown; in either case readings are brought up to date, before it is over. */
function useChange<T, R>(place: () => Place, change: (wanted: T) => Promise<R>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: change,
    onMutate: () => place(),
    onSettled: (_made, _error, _wanted, there) => refreshFlags(client, there ?? place()),
  }));
}

export function useUpdateFlag(place: () => Place, key: () => string) {
  return useChange(place, ({ fields, ...basis }: ChangeBasis & { fields: FlagChange }) =>
    versionAfter(
      api.PATCH('/api/v1/flags/{flagKey}', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
        body: fields,
      }),
    ),
  );
}

export type VariationWanted = ChangeBasis & {
  /** Without it the variation is added. */
  id?: string;
  fields: VariationChange;
};

export function useSaveVariation(place: () => Place, key: () => string) {
  return useChange(place, ({ id, fields, ...basis }: VariationWanted) => {
    const header = changeHeaders(place(), basis);
    if (id === undefined) {
      return versionAfter(
        api.POST('/api/v1/flags/{flagKey}/variations', {
          params: { path: { flagKey: key() }, header },
          body: fields as Schemas['NewVariationBody'],
        }),
      );
    }
    return versionAfter(
      api.PATCH('/api/v1/flags/{flagKey}/variations/{variationId}', {
        params: { path: { flagKey: key(), variationId: id }, header },
        body: fields,
      }),
    );
  });
}

export function useRemoveVariation(place: () => Place, key: () => string) {
  return useChange(place, ({ id, ...basis }: ChangeBasis & { id: string }) =>
    answer(
      api.DELETE('/api/v1/flags/{flagKey}/variations/{variationId}', {
        params: { path: { flagKey: key(), variationId: id }, header: changeHeaders(place(), basis) },
      }),
    ),
  );
}

export type RulesWanted = ChangeBasis & {
  rules?: NewRule[];
  /** null unsets it; undefined leaves it. */
  fallthrough?: Serve | null;
  enabled?: boolean;
  /** Hears of each part that is saved, and of the version that it made: a later one may be refused. */
  savedPart?: (part: 'rules' | 'fallthrough', version: number) => void;
};

/** Changes the rules, the fallthrough, and whether the flag is on: each is a change, which stands on the one before. */
export function useSaveRules(place: () => Place, key: () => string) {
  return useChange(place, async ({ rules, fallthrough, enabled, savedPart, ...basis }: RulesWanted) => {
    const [there, flagKey] = [place(), key()]; // the person may go elsewhere between two steps
    const params = () => ({ path: { flagKey }, header: changeHeaders(there, basis) });
    if (rules) {
      basis.version = await versionAfter(
        api.PUT('/api/v1/flags/{flagKey}/rules', { params: params(), body: { rules } }),
      );
      savedPart?.('rules', basis.version);
    }
    if (fallthrough !== undefined) {
      basis.version = await versionAfter(
        api.PUT('/api/v1/flags/{flagKey}/fallthrough', { params: params(), body: { serve: fallthrough } }),
      );
      savedPart?.('fallthrough', basis.version);
    }
    if (enabled !== undefined) {
      const call = { params: params() };
      basis.version = await versionAfter(
        enabled ? api.POST('/api/v1/flags/{flagKey}/enable', call) : api.POST('/api/v1/flags/{flagKey}/disable', call),
      );
    }
    return basis.version;
  });
}

/** Deletes a flag. Its history stays. */
export function useDeleteFlag(place: () => Place, key: () => string) {
  return useChange(place, (basis: ChangeBasis) =>
    answer(
      api.DELETE('/api/v1/flags/{flagKey}', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
      }),
    ),
  );
}

export function useRevert(place: () => Place, key: () => string) {
  return useChange(place, ({ to, ...basis }: ChangeBasis & { to: number }) =>
    body(
      api.POST('/api/v1/flags/{flagKey}/revert', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
        body: { version: to },
      }),
    ),
  );
}

/** A switch, with the place where it was asked for: it may wait for its turn while the person goes elsewhere. */
type Switched = { place: Place; key: string; to: boolean };

/** Switches a flag in an environment. It is shown at once, and taken back where the service refuses. Switches wait for each other. */
export function useSwitchHere() {
  const client = useQueryClient();
  return createMutation(() => ({
    scope: { id: 'switch' },
    mutationFn: async ({ place, key, to }: Switched) => {
      const version = client.getQueryData<FlagDetail>(keys.flag(place, key))?.version ?? 0;
      const call = { params: { path: { flagKey: key }, header: changeHeaders(place, { version }) } };
      noteVersion(
        place,
        key,
        await versionAfter(
          to ? api.POST('/api/v1/flags/{flagKey}/enable', call) : api.POST('/api/v1/flags/{flagKey}/disable', call),
        ),
      );
    },
    onMutate: async ({ place, key, to }) => {
      await client.cancelQueries({ queryKey: keys.flag(place, key), exact: true });
      show(place, key, to);
    },
    onError: (_error, { place, key, to }) => show(place, key, !to),
    onSettled: (_made, _error, { place }) => refreshFlags(client, place),
  }));

  function show(place: Place, key: string, enabled: boolean): void {
    client.setQueryData<FlagDetail>(keys.flag(place, key), (flag) => flag && { ...flag, enabled });
  }

  // What was switched is all that is new in the version: the next switch stands on it, also where that is not read yet.
  function noteVersion({ tenant }: Place, key: string, version: number): void {
    client.setQueriesData<FlagDetail>(
      {
        queryKey: keys.tenantFlags(tenant),
        predicate: ({ queryKey }) =>
          queryKey.join() === keys.flag({ tenant, environment: String(queryKey[2]) }, key).join(),
      },
      (flag) => flag && { ...flag, version: Math.max(flag.version, version) },
    );
  }
}

/** The project that a flag belongs to, where it belongs to one. */
export function useProjectOf(place: () => Place, id: () => string | null) {
  return createQuery(() => ({
    queryKey: [...keys.projects(place().tenant), id()],
    queryFn: () =>
      body(
        api.GET('/api/v1/projects/{projectId}', {
          params: { path: { projectId: id()! }, header: { 'X-Tenant-ID': place().tenant } },
        }),
      ),
    enabled: id() !== null,
    staleTime: 60_000,
  }));
}
