import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, body } from '../api/client';
import { session } from '../session/session.svelte';
import { keys } from './keys';

const tourKey = 'dashboard@1';

const path = () => ({ params: { path: { userId: session.user!.id, tourKey } } });

/** Reads whether the person has seen or dismissed the tour. */
export function useTour() {
  return createQuery(() => ({
    queryKey: keys.tour,
    queryFn: () => body(api.GET('/api/v1/users/{userId}/product-tours/{tourKey}', path())),
    staleTime: Infinity,
  }));
}

/** Records that the tour is over, or to be shown again. */
export function useMarkTour() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (over: boolean) => {
      const call = path();
      return over
        ? answer(
            api.PUT('/api/v1/users/{userId}/product-tours/{tourKey}', {
              ...call,
              body: { completed: true },
            }),
          )
        : answer(api.DELETE('/api/v1/users/{userId}/product-tours/{tourKey}', call));
    },
    onMutate: (completed) => client.setQueryData<{ completed: boolean }>(keys.tour, (tour) => ({ ...tour, completed })),
  }));
}
