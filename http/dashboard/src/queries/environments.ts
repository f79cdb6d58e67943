import { createMutation, useQueryClient } from '@tanstack/svelte-query';
import { api, body } from '../api/client';
import { keys } from './keys';

export function useAddEnvironment(tenant: () => string) {
  return useChange(tenant, (environment: string) =>
    body(
      api.POST('/api/v1/tenants/{tenantId}/environments', {
        params: { path: { tenantId: tenant() } },
        body: { environment },
      }),
    ),
  );
}

/** Deletes an environment, and what flags are in it. */
export function useDeleteEnvironment(tenant: () => string) {
  return useChange(tenant, (environment: string) =>
    body(
      api.DELETE('/api/v1/tenants/{tenantId}/environments/{environment}', {
        params: { path: { tenantId: tenant(), environment } },
      }),
    ),
  );
}

function useChange<Made>(tenant: () => string, make: (environment: string) => Promise<Made>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    onMutate: tenant,
    onSettled: async (_made, _error, _environment, there = tenant()) => {
      await client.invalidateQueries({ queryKey: keys.environments(there) });
      await client.invalidateQueries({ queryKey: keys.tenantFlags(there) });
    },
  }));
}
