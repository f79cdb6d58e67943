import { createQuery, type QueryClient, useQueryClient } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';

export type Dependent = Schemas['DependentBody'];

const dependentsOf = ({ tenant, environment }: Place, flagKey: string) => ({
  queryKey: [...keys.everywhere(tenant), 'dependents', flagKey],
  queryFn: ({ signal }: { signal: AbortSignal }): Promise<Dependent[]> =>
    exactBody<Dependent[]>(
      api.GET('/api/v1/flags/{flagKey}/dependents', {
        params: { path: { flagKey }, header: at({ tenant, environment }) },
        parseAs: 'text',
        signal,
      }),
    ),
  structuralSharing: false as const,
});

/** Reads who requires a flag directly, in all environments. */
export function useDependents(place: () => Place, key: () => string) {
  return createQuery(() => dependentsOf(place(), key()));
}

/** Reads who requires a flag directly, from the cache if it was read just now. */
export const readDependents = (client: QueryClient, place: Place, key: string): Promise<Dependent[]> =>
  client.fetchQuery(dependentsOf(place, key));

/** Returns who requires the opposite of what a flag is switched to in an environment, or in any. */
export const followersOf = (dependents: Dependent[], on: boolean, environment?: string): Dependent[] =>
  dependents.filter(
    (dependent) => !!dependent.off === on && (environment === undefined || dependent.environment === environment),
  );

const mostFollowers = 100;

/** The flags that change with flags that are switched, and whether some of them do so through others. */
export type Followers = { flagKeys: string[]; indirect: boolean };

/** Reads which flags change when some are switched, because they require the opposite, directly or through others. */
export function useFollowers(
  place: () => Place,
  switched: () => string[],
  on: () => boolean,
  everywhere: () => boolean,
) {
  const client = useQueryClient();
  return createQuery(() => {
    const [there, roots, to] = [place(), switched(), on()];
    const environment = everywhere() ? undefined : there.environment;
    return {
      queryKey: [...keys.everywhere(there.tenant), 'followers', environment, to, ...roots],
      queryFn: async (): Promise<Followers> => {
        const flagKeys = new Set<string>();
        let direct = 0;
        for (let level = roots; level.length && flagKeys.size < mostFollowers;) {
          const lists = await Promise.all(level.map((key) => readDependents(client, there, key)));
          // What follows goes off, as a flag goes on by its own switch alone.
          const next = followersOf(lists.flat(), level === roots && to, environment).map(({ flagKey }) => flagKey);
          level = [...new Set(next)].filter((key) => !flagKeys.has(key) && !roots.includes(key));
          for (const key of level) flagKeys.add(key);
          direct ||= flagKeys.size;
        }
        return { flagKeys: [...flagKeys], indirect: flagKeys.size > direct };
      },
    };
  });
}
