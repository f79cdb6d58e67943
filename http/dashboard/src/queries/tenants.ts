import { createQuery } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type Tenant = Schemas['TenantBody'];

/** Returns the environment to start in. */
export const defaultEnvironment = (environments: string[]): string | undefined =>
  environments.includes('production') ? 'production' : environments[0];

/** The query of the person's tenants, with their role in each. */
export const tenantsQuery = {
  queryKey: keys.tenants,
  queryFn: () => body(api.GET('/api/v1/tenants')),
  staleTime: 60_000,
};

/** Reads the person's tenants. */
export function useTenants() {
  return createQuery(() => tenantsQuery);
}

export type EnvironmentSettings = Schemas['EnvironmentSettings'];

/** The query of a tenant's environments with their colors, in the tenant's order, which all pages have. */
export function environmentsQuery(tenant: string) {
  return {
    queryKey: keys.environments(tenant),
    queryFn: async () => {
      const params = { path: { tenantId: tenant } };
      return (await body(api.GET('/api/v1/tenants/{tenantId}/environments/settings', { params }))).environments;
    },
    staleTime: 60_000,
  };
}

export const environmentNames = (list: EnvironmentSettings[]): string[] => list.map(({ name }) => name);

/** Reads the names of a tenant's environments, in order; none while the tenant is unknown. */
export function useEnvironments(tenant: () => string | undefined) {
  return createQuery(() => ({
    ...environmentsQuery(tenant() ?? ''),
    select: environmentNames,
    enabled: tenant() !== undefined,
  }));
}

/** Reads a tenant's environments with their colors, in order. */
export function useArrangement(tenant: () => string) {
  return createQuery(() => environmentsQuery(tenant()));
}

/** Returns names of environments in the tenant's order, and those that it does not have any more at the end. */
export function inOrder(names: string[], environments: string[] = []): string[] {
  const gone = names.filter((name) => !environments.includes(name));
  return [...environments.filter((name) => names.includes(name)), ...gone.sort()];
}
