import { createMutation, createQueries, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, at, body, type Place, type Schemas } from '../api/client';
import type { operations } from '../api/schema';
import { switchFlag, switchScope, type SwitchRequest, versionAfter } from './flagChange';
import { keys } from './keys';
import { reasonHeader } from './reason';

export type Flag = Schemas['FlagBody'];
export type Link = Schemas['LinkBody'];
export type NewFlag = Schemas['CreateFlagBody'];

type Query = NonNullable<operations['list-flags']['parameters']['query']>;

/** The filter and order of a list of flags. */
export type FlagFilter = Pick<
  Query,
  'q' | 'type' | 'status' | 'enabled' | 'lifecycle' | 'clientSide' | 'tag' | 'projectId' | 'owner' | 'sort'
>;

/** The number of flags in a page. */
export const pageSize = 100;

export type FlagPage = { flags: Flag[]; total: number };

async function readPage(place: Place, filter: FlagFilter, page: number, signal: AbortSignal): Promise<FlagPage> {
  const { body: flags, headers } = await answer(
    api.GET('/api/v1/flags', {
      params: { header: at(place), query: { ...filter, limit: pageSize, offset: page * pageSize } },
      signal,
    }),
  );
  return { flags, total: Number(headers.get('X-Total-Count') ?? flags.length) };
}

/** The query of a page of a list of flags. */
export function pageOf(place: Place, filter: FlagFilter, page: number) {
  return {
    queryKey: keys.flagPage(place, filter, page),
    queryFn: ({ signal }: { signal: AbortSignal }) => readPage(place, filter, page, signal),
  };
}

/** Reads the first page of a list of flags. The old results stay visible while another filter loads. */
export function useFirstFlags(place: () => Place, filter: () => FlagFilter) {
  return createQuery(() => ({
    ...pageOf(place(), filter(), 0),
    placeholderData: (before: FlagPage | undefined) => before,
  }));
}

/** Reads further pages of a list of flags, in the given order. */
export function useFlagPages(place: () => Place, filter: () => FlagFilter, pages: () => number[]) {
  return createQueries(() => ({ queries: pages().map((page) => pageOf(place(), filter(), page)) }));
}

/** Switches a flag and returns its new version. Lists show it at once, and undo it if the service refuses. */
export function useSwitchFlagInLists() {
  const client = useQueryClient();
  const mutationKey = ['switch'];
  return createMutation(() => ({
    mutationKey,
    scope: switchScope,
    mutationFn: ({ place, key, on, reason }: SwitchRequest) =>
      versionAfter(switchFlag(key, on, { ...at(place), ...reasonHeader(reason) })),
    onMutate: ({ place, key, on }) => show(place, key, on),
    onError: (_error, { place, key, on }) => show(place, key, !on),
    // Lists are read after the tenant's last switch; earlier reads would show an old state.
    onSettled: (_made, _error, { place: { tenant } }) =>
      client.isMutating({
        mutationKey,
        predicate: ({ state }) => (state.variables as SwitchRequest).place.tenant === tenant,
      }) === 1
        ? client.invalidateQueries({ queryKey: keys.tenantFlags(tenant), refetchType: 'active' })
        : undefined,
  }));

  function show(place: Place, key: string, on: boolean): void {
    client.setQueriesData<FlagPage>({ queryKey: [...keys.flags(place), 'list'] }, (page) =>
      page ? { ...page, flags: page.flags.map((f) => (f.key === key ? { ...f, enabled: on } : f)) } : page,
    );
  }
}

export function useCreateFlag(place: () => Place) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (flag: NewFlag) => body(api.POST('/api/v1/flags', { params: { header: at(place()) }, body: flag })),
    onMutate: place,
    onSuccess: (_made, _flag, { tenant }) => {
      void client.invalidateQueries({ queryKey: keys.projects(tenant) }); // their flag counts change
      return client.invalidateQueries({ queryKey: keys.tenantFlags(tenant) });
    },
  }));
}

/** Evaluates a flag for a user as a preview, which is not counted. */
export function useEvaluate(place: () => Place) {
  return createMutation(() => ({
    mutationFn: (key: string) =>
      body(
        api.POST('/api/v1/flags/{flagKey}/evaluate', {
          params: { path: { flagKey: key }, header: at(place()), query: { preview: true } },
          body: { targetingKey: 'user-42', environment: place().environment },
        }),
      ),
  }));
}
