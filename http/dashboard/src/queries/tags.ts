import { createQuery } from '@tanstack/svelte-query';
import { api, at, body, type Place } from '../api/client';
import { keys } from './keys';

/** Reads the names of the tags of a tenant's flags, in order. */
export function useTags(place: () => Place) {
  return createQuery(() => ({
    queryKey: keys.tags(place().tenant),
    queryFn: async () =>
      (await body(api.GET('/api/v1/tags', { params: { header: at(place()) } }))).map(({ name }) => name),
  }));
}
