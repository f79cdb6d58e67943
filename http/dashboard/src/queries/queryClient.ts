import { MutationCache, QueryCache, QueryClient } from '@tanstack/svelte-query';
import { asFailure } from '../api/failure';
import { keys } from './keys';

const tries = 3;
const longest = 30_000; // milliseconds between two tries

/** What was read stays on the screen while a new reading fails; see shell/Outage.svelte, which says so. */
export function newQueryClient(): QueryClient {
  const client = new QueryClient({
    // Somebody has deleted an environment: see shell/Shell.svelte.
    queryCache: new QueryCache({
      onError: (error) =>
        asFailure(error).noEnvironment && client.invalidateQueries({ queryKey: keys.allEnvironments }),
    }),
    // A role may have been taken away: what it allowed is no longer offered.
    mutationCache: new MutationCache({
      onError: (error) => {
        if (asFailure(error).status === 403) void client.invalidateQueries({ queryKey: keys.tenants });
      },
    }),
    defaultOptions: {
      queries: {
        networkMode: 'always',
        staleTime: 5_000,
        retry: (failures, error) => asFailure(error).transient && failures < tries,
        retryDelay: (failures, error) => {
          const { retryAfter } = asFailure(error);
          return Math.min(retryAfter ? retryAfter * 1000 : 500 * 2 ** failures, longest);
        },
        // Retries transient failures.
        refetchInterval: (query) => (query.state.error && asFailure(query.state.error).transient ? 5_000 : false),
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });
  return client;
}
