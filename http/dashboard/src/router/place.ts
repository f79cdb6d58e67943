import { createContext } from 'svelte';
import type { Place } from '../api/client';

const [get, set] = createContext<() => Place>();

export const setPlace = set;

/** The tenant and the environment that the URL names. Call it at a component's start; what it returns is read where it is needed. */
export const usePlace = get;

/** The path of a page of a tenant: pathIn(place, 'flags', key). */
export function pathIn(place: Place, ...parts: string[]): string {
  return ['/t', place.tenant, place.environment, ...parts]
    .map((part, i) => (i ? encodeURIComponent(part) : part))
    .join('/');
}
