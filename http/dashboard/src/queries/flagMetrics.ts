import { createQuery, keepPreviousData } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';

export type FlagUse = Schemas['FlagMetrics'];
export type Period = 'day' | 'week' | 'month' | 'year';

const days: Record<Period, number> = { day: 1, week: 7, month: 30, year: 365 };

/** Reads who evaluated a flag and what they got, in a period up to now: hourly up to a week, else daily. Without an environment it covers all. */
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
      // The last point is the current hour or day.
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
    refetchInterval: 10_000, // usage appears within seconds
    placeholderData: keepPreviousData,
    structuralSharing: false,
  }));
}
