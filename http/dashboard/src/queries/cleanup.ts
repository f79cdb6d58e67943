import { createInfiniteQuery } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactAnswer } from '../api/exact';
import { keys } from './keys';

export type CleanupFlag = Schemas['CleanupFlag'];

const pageSize = 100;

/** Reads the flags to clean up, the oldest candidates first. */
export function useCleanup(place: () => Place) {
  return createInfiniteQuery(() => ({
    queryKey: keys.cleanup(place().tenant),
    queryFn: async ({ pageParam, signal }: { pageParam: number; signal: AbortSignal }) => {
      const { body: flags, headers } = await exactAnswer<CleanupFlag[]>(
        api.GET('/api/v1/cleanup', {
          params: { header: at(place()), query: { limit: pageSize, offset: pageParam } },
          parseAs: 'text',
          signal,
        }),
      );
      return { flags, next: headers.get('Link') ? pageParam + pageSize : undefined };
    },
    initialPageParam: 0,
    getNextPageParam: (page: { next: number | undefined }) => page.next,
    structuralSharing: false,
  }));
}
