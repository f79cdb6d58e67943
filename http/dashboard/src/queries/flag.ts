import { createMutation, createQueries, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import {
  type ChangeBasis,
  changeHeaders,
  refreshFlags,
  switchFlag,
  switchScope,
  type SwitchRequest,
  useFlagChange,
  versionAfter,
} from './flagChange';
import { keys } from './keys';

export type FlagDetail = Schemas['FlagDetail'];
export type FlagChange = Schemas['UpdateFlagBody'];
export type FlagType = FlagDetail['type'];
export type Variation = Schemas['VariationBody'];
export type VariationChange = Schemas['UpdateVariationBody'];
/** Reads a flag in one environment. */
export type FlagInEnvironment = Schemas['FlagInEnvironment'];

/** The query of a flag in one environment. */
export function readFlag(place: Place, key: string) {
  return {
    queryKey: keys.flag(place, key),
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      exactBody<FlagDetail>(
        api.GET('/api/v1/flags/{flagKey}', {
          params: { path: { flagKey: key }, header: at(place) },
          parseAs: 'text',
          signal,
        }),
      ),
    structuralSharing: false as const,
  };
}

export function useFlag(place: () => Place, key: () => string) {
  return createQuery(() => readFlag(place(), key()));
}

/** Reads a flag in several environments, in order. */
export function useFlagIn(places: () => Place[], key: () => string) {
  return createQueries(() => ({ queries: places().map((place) => readFlag(place, key())) }));
}

/** Reads the variations of a flag that exists. */
export function useVariations(place: () => Place, key: () => string, exists: () => boolean) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'variations'],
    queryFn: ({ signal }) =>
      exactBody<Variation[]>(
        api.GET('/api/v1/flags/{flagKey}/variations', {
          params: { path: { flagKey: key() }, header: at(place()) },
          parseAs: 'text',
          signal,
        }),
      ),
    enabled: exists(),
    structuralSharing: false,
  }));
}

export function useUpdateFlag(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ fields, ...basis }: ChangeBasis & { fields: FlagChange }) =>
    versionAfter(
      api.PATCH('/api/v1/flags/{flagKey}', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
        body: fields,
      }),
    ),
  );
}

export type VariationWanted = ChangeBasis & {
  /** The variation to change; a new one without it. */
  id?: string;
  fields: VariationChange;
};

export function useSaveVariation(place: () => Place, key: () => string) {
  return useFlagChange(place, ({ id, fields, ...basis }: VariationWanted) => {
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
  return useFlagChange(place, ({ id, ...basis }: ChangeBasis & { id: string }) =>
    answer(
      api.DELETE('/api/v1/flags/{flagKey}/variations/{variationId}', {
        params: { path: { flagKey: key(), variationId: id }, header: changeHeaders(place(), basis) },
      }),
    ),
  );
}

/** Deletes a flag. Its history stays. */
export function useDeleteFlag(place: () => Place, key: () => string) {
  return useFlagChange(place, (basis: ChangeBasis) =>
    answer(
      api.DELETE('/api/v1/flags/{flagKey}', {
        params: { path: { flagKey: key() }, header: changeHeaders(place(), basis) },
      }),
    ),
  );
}

/** Switches a flag in an environment and returns its new version. The page shows it at once, and undoes it if the service refuses. Switches run one after the other. */
export function useSwitchFlagOnPage() {
  const client = useQueryClient();
  return createMutation(() => ({
    scope: switchScope,
    mutationFn: async ({ place, key, on, reason, onVersion }: SwitchRequest) => {
      const version = client.getQueryData<FlagDetail>(keys.flag(place, key))?.version ?? 0;
      onVersion?.(version);
      const made = await versionAfter(switchFlag(key, on, changeHeaders(place, { version, reason })));
      noteVersion(place, key, made);
      return made;
    },
    onMutate: async ({ place, key, on }) => {
      await client.cancelQueries({ queryKey: keys.flag(place, key), exact: true });
      show(place, key, on);
    },
    onError: (_error, { place, key, on }) => show(place, key, !on),
    onSettled: (_made, _error, { place }) => refreshFlags(client, place),
  }));

  function show(place: Place, key: string, enabled: boolean): void {
    client.setQueryData<FlagDetail>(keys.flag(place, key), (flag) => flag && { ...flag, enabled });
  }

  // Only the switch is new in this version, so the next switch may be based on it before it is read.
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
