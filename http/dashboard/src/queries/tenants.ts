import { createQuery } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type Tenant = Schemas['TenantBody'];

/** Returns the environment to start in. */
export const defaultEnvironment = (environments: string[]): string | undefined =>
  environments.includes('production') ? 'production' : environments[0];

/** Reads the person's tenants. */
export function useTenants() {
  return createQuery(() => ({
    queryKey: keys.tenants,
    queryFn: () => body(api.GET('/api/v1/tenants')),
    staleTime: 60_000,
  }));
}

/** The query of a tenant's environments. */
export function environmentsQuery(tenant: string) {
  return {
    queryKey: keys.environments(tenant),
    queryFn: () => body(api.GET('/api/v1/tenants/{tenantId}/environments', { params: { path: { tenantId: tenant } } })),
    staleTime: 60_000,
  };
}

/** Reads the environments of a tenant; none while it is unknown. */
export function useEnvironments(tenant: () => string | undefined) {
  return createQuery(() => ({ ...environmentsQuery(tenant() ?? ''), enabled: tenant() !== undefined }));
}
