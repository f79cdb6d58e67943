import { createMutation, useQueryClient } from '@tanstack/svelte-query';
import { api, body } from '../api/client';
import { keys } from './keys';
import { environmentsQuery, type EnvironmentSettings } from './tenants';

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

/** Deletes an environment with the state of flags in it. deleted is called before queries miss it. */
export function useDeleteEnvironment(tenant: () => string, deleted: (environment: string) => void) {
  return useChange(
    tenant,
    (environment: string) =>
      body(
        api.DELETE('/api/v1/tenants/{tenantId}/environments/{environment}', {
          params: { path: { tenantId: tenant(), environment } },
        }),
      ),
    deleted,
  );
}

/** Changes the order and the colors of environments as they are now. Several changes are sent one after the other. */
export function useArrangeEnvironments(tenant: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    scope: { id: 'environments' },
    mutationFn: async (change: (environments: EnvironmentSettings[]) => EnvironmentSettings[]) => {
      const there = tenant();
      const now = await client.fetchQuery({ ...environmentsQuery(there), staleTime: 0 });
      return body(
        api.PUT('/api/v1/tenants/{tenantId}/environments/settings', {
          params: { path: { tenantId: there } },
          body: { environments: change(now) },
        }),
      );
    },
    onMutate: tenant,
    onSettled: (_made, _error, _change, there = tenant()) =>
      client.invalidateQueries({ queryKey: keys.environments(there) }),
  }));
}

function useChange<Made>(
  tenant: () => string,
  make: (environment: string) => Promise<Made>,
  made?: (environment: string) => void,
) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    onMutate: tenant,
    onSuccess: (_made, environment) => made?.(environment),
    onSettled: async (_made, _error, _environment, there = tenant()) => {
      await client.invalidateQueries({ queryKey: keys.environments(there) });
      await client.invalidateQueries({ queryKey: keys.tenantFlags(there) });
    },
  }));
}
