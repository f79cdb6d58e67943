import { createQuery } from '@tanstack/svelte-query';
import { api, body, type Place, type Schemas } from '../api/client';
import { keys } from './keys';

export type Usage = NonNullable<ReturnType<typeof useUsage>['data']>;
export type Metrics = Schemas['TenantMetrics'];

/** Reads the usage and the limits of a tenant. */
export function useUsage(tenant: () => string) {
  return createQuery(() => ({
    queryKey: keys.usage(tenant()),
    queryFn: () => body(api.GET('/api/v1/tenants/{tenantId}/usage', { params: { path: { tenantId: tenant() } } })),
    refetchInterval: 10_000,
  }));
}

/** Reads who evaluated how much at a place: hourly for a day, or daily for a month. */
export function useTenantMetrics(place: () => Place, interval: () => Metrics['interval']) {
  return createQuery(() => ({
    queryKey: [...keys.usage(place().tenant), place().environment, interval()],
    queryFn: () =>
      body(
        api.GET('/api/v1/tenants/{tenantId}/metrics', {
          params: {
            path: { tenantId: place().tenant },
            query: { interval: interval(), environment: place().environment },
          },
        }),
      ),
    refetchInterval: 10_000, // usage appears within seconds
    placeholderData: (before: Metrics | undefined) => before,
  }));
}
