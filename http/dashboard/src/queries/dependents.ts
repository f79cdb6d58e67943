import { createQuery, type QueryClient } from '@tanstack/svelte-query';
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
