import { createQuery, keepPreviousData } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';

export type FlagUse = Schemas['FlagMetrics'];
export type Period = 'day' | 'week' | 'month' | 'year';

const days: Record<Period, number> = { day: 1, week: 7, month: 30, year: 365 };

/** Who evaluated a flag and what they got, in a period that ends now: by the hour up to a week, else by the day. Without an environment it is of all. */
export function useFlagUse(
  place: () => Place,
  key: () => string,
  period: () => Period,
  environment: () => string | undefined,
) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'use', period(), environment()],
    queryFn: ({ signal }) => {
      const since = days[period()] - 1;
      // The hour or the day that goes on now is the last point.
      const from = new Date(Date.now() - (since * 24 + (since > 6 ? 0 : 23)) * 3600_000).toISOString();
      return exactBody<FlagUse>(
        api.GET('/api/v1/flags/{flagKey}/metrics', {
          params: {
            path: { flagKey: key() },
            header: at(place()),
            query: { from, interval: since > 6 ? 'day' : 'hour', environment: environment() },
          },
          parseAs: 'text',
          signal,
        }),
      );
    },
    refetchInterval: 10_000, // uses show within seconds
    placeholderData: keepPreviousData,
    structuralSharing: false,
  }));
}
