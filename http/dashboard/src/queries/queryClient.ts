import { MutationCache, QueryCache, QueryClient } from '@tanstack/svelte-query';
import { asFailure } from '../api/failure';
import { keys } from './keys';

const tries = 3;
const longest = 30_000; // milliseconds between two retries

/** Creates the client of queries. Data stays visible while a new read fails; shell/Outage.svelte reports that. */
export function newQueryClient(): QueryClient {
  const client = new QueryClient({
    // An environment was deleted: see shell/Shell.svelte.
    queryCache: new QueryCache({
      onError: (error) =>
        asFailure(error).noEnvironment && client.invalidateQueries({ queryKey: keys.allEnvironments }),
    }),
    // The person's role may have changed, so their permissions are read again.
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
