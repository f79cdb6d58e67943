import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type Notification = Schemas['NotificationBody'];

const shown = 20;

/** Reads the newest notifications of the person, and the number of unread ones. */
export function useNotifications() {
  return createQuery(() => ({
    queryKey: keys.notifications,
    queryFn: () => body(api.GET('/api/v1/notifications', { params: { query: { limit: shown } } })),
    refetchInterval: 60_000,
    notifyOnChangeProps: 'all' as const, // failures before the list is opened show when it is
  }));
}

/** Marks all notifications as read. */
export function useReadAll() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () => body(api.PATCH('/api/v1/notifications/read-all')),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.notifications }),
  }));
}
