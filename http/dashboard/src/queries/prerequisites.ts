import { createQueries, createQuery, type QueryClient, useQueryClient } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactAnswer } from '../api/exact';
import { asFailure } from '../api/failure';
import { type Dependent, readDependents } from './dependents';
import { type FlagInEnvironment, readFlag } from './flag';
import { type ChangeBasis, changeHeaders, useFlagChange, versionAfter, versionOf } from './flagChange';
import { type FlagAtVersion, readVersion } from './history';
import { keys } from './keys';
import type { ChangedField, Names } from '../words/changes';

export type Prerequisite = Schemas['PrerequisiteBody'];
export type ServedValue = NonNullable<Prerequisite['serves']>[number];

export type VersionedPrerequisites = { prerequisites: Prerequisite[]; version: number };

/** Reads what a flag requires in an environment. */
export function usePrerequisites(place: () => Place, key: () => string) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'prerequisites'],
    queryFn: async ({ signal }): Promise<VersionedPrerequisites> => {
      const { body, headers } = await exactAnswer<{ prerequisites: Prerequisite[] }>(
        api.GET('/api/v1/flags/{flagKey}/prerequisites', {
          params: { path: { flagKey: key() }, header: at(place()) },
          parseAs: 'text',
          signal,
        }),
      );
      return { prerequisites: body.prerequisites, version: versionOf(headers) };
    },
    structuralSharing: false,
  }));
}

export function useSavePrerequisites(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ prerequisites, ...basis }: ChangeBasis & { prerequisites: Prerequisite[] }) =>
    versionAfter(
      api.PUT('/api/v1/flags/{flagKey}/prerequisites', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
        body: { prerequisites },
      }),
    ),
  );
}

/** Reads several flags in one environment, in order. */
export function useFlags(place: () => Place, flagKeys: () => string[]) {
  return createQueries(() => ({ queries: flagKeys().map((key) => readFlag(place(), key)) }));
}

/** Returns what a flag requires in an environment. */
export const requiredIn = (column: FlagInEnvironment | undefined): Prerequisite[] => column?.prerequisites ?? [];

/** A flag in all environments. */
export type FlagEverywhere = NonNullable<FlagAtVersion['flag']>;

/** Flags by key; null for one that does not exist. */
export type Graph = ReadonlyMap<string, FlagEverywhere | null>;

const mostFlags = 100; // in a graph that is shown

/** Reads flags and all that they require, in all environments. */
export function useRequired(place: () => Place, flagKeys: () => string[]) {
  const client = useQueryClient();
  return createQuery(() => {
    const [there, roots] = [place(), [...new Set(flagKeys())].sort()];
    return {
      queryKey: [...keys.everywhere(there.tenant), 'required', ...roots],
      queryFn: (): Promise<Graph> =>
        walk(
          roots,
          (key) => readEverywhere(client, there, key),
          (flag) =>
            Object.values(flag?.environments ?? {})
              .flatMap(requiredIn)
              .map(({ flagKey }) => flagKey),
        ),
      enabled: roots.length > 0,
      structuralSharing: false,
    };
  });
}

/** A flag that others require in an environment. */
export type RequiredFlag = { flag: FlagEverywhere | null; dependents: Dependent[] };

/** Reads who requires a flag in an environment, directly or through others. */
export function useRequiring(place: () => Place, key: () => string) {
  const client = useQueryClient();
  return createQuery(() => {
    const [there, root] = [place(), key()];
    return {
      queryKey: [...keys.everywhere(there.tenant), 'requiring', there.environment, root],
      queryFn: (): Promise<ReadonlyMap<string, RequiredFlag>> =>
        walk(
          [root],
          async (flagKey) => {
            const [flag, dependents] = await Promise.all([
              readEverywhere(client, there, flagKey),
              readDependents(client, there, flagKey).catch(unlessMissing<Dependent[]>([])),
            ]);
            return { flag, dependents: dependents.filter(({ environment }) => environment === there.environment) };
          },
          ({ dependents }) => dependents.map(({ flagKey }) => flagKey),
        ),
      structuralSharing: false,
    };
  });
}

async function readEverywhere(client: QueryClient, place: Place, key: string): Promise<FlagEverywhere | null> {
  try {
    const { version } = await client.fetchQuery(readFlag(place, key));
    return (await client.fetchQuery(readVersion(place, key, version))).flag;
  } catch (error) {
    return unlessMissing(null)(error);
  }
}

const unlessMissing =
  <T>(none: T) =>
  (error: unknown): T => {
    if (asFailure(error).status === 404) return none;
    throw error;
  };

// Reads what is reached from the roots, breadth first.
async function walk<T>(roots: string[], read: (key: string) => Promise<T>, next: (found: T) => string[]) {
  const all = new Map<string, T>();
  for (let level = roots; level.length && all.size < mostFlags;) {
    const found = await Promise.all(
      level.slice(0, mostFlags - all.size).map(async (key) => [key, await read(key)] as const),
    );
    for (const [key, value] of found) all.set(key, value);
    level = [...new Set(found.flatMap(([, value]) => next(value)))].filter((key) => !all.has(key));
  }
  return all;
}

/** Returns the names of the variations of other flags that changes of prerequisites mention, by id. */
export function useRequiredNames(place: () => Place, changes: () => readonly ChangedField[]): () => Names {
  const mentioned = () => {
    const lists = changes()
      .filter(({ field }) => field === 'prerequisites')
      .flatMap(({ from, to }) => [from, to] as (Prerequisite[] | null | undefined)[]);
    return [...new Set(lists.flatMap((list) => list ?? []).map(({ flagKey }) => flagKey))];
  };
  const flags = useFlags(place, mentioned);
  return () => new Map(flags.flatMap(({ data }) => data?.variations.map(({ id, name }) => [id, name] as const) ?? []));
}
