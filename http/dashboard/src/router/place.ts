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

/** The path of the same page in another environment: its path differs in that alone. */
export function elsewhere(path: string, environment: string): string {
  const parts = path.split('/');
  parts[3] = encodeURIComponent(environment);
  return parts.join('/');
}
