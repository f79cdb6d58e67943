import { createQuery } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type Tenant = Schemas['TenantBody'];

/** The tenants that the person is a member of. */
export function useTenants() {
  return createQuery(() => ({
    queryKey: keys.tenants,
    queryFn: () => body(api.GET('/api/v1/tenants')),
    staleTime: 60_000,
  }));
}

/** The environments of a tenant, by name. */
export function useEnvironments(tenant: () => string) {
  return createQuery(() => ({
    queryKey: keys.environments(tenant()),
    queryFn: () =>
      body(api.GET('/api/v1/tenants/{tenantId}/environments', { params: { path: { tenantId: tenant() } } })),
    staleTime: 60_000,
  }));
}
