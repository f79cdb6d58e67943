import { createContext } from 'svelte';
import type { Place } from '../api/client';

const [get, set] = createContext<() => Place>();

export const setPlace = set;

/** Returns the URL's tenant and environment as a function. Call it when a component starts. */
export const usePlace = get;

/** Returns the path of a tenant's page: pathIn(place, 'flags', key). */
export function pathIn(place: Place, ...parts: string[]): string {
  return ['/t', place.tenant, place.environment, ...parts]
    .map((part, i) => (i ? encodeURIComponent(part) : part))
    .join('/');
}

/** Returns the path of the same page in another environment. */
export function pathInEnvironment(path: string, environment: string): string {
  const parts = path.split('/');
  parts[3] = encodeURIComponent(environment);
  return parts.join('/');
}
