import type { QueryClient } from '@tanstack/svelte-query';
import type { Place } from '../api/client';
import type { FlagDetail } from '../queries/flag';
import type { FlagPage } from '../queries/flags';
import { keys } from '../queries/keys';

/** The versions of flags that are shown. */
export function knownVersions(client: QueryClient, place: Place): Map<string, number> {
  const known = new Map<string, number>();
  for (const [, page] of client.getQueriesData<FlagPage>({ queryKey: [...keys.flags(place), 'list'] })) {
    for (const { key, version } of page?.flags ?? []) known.set(key, Math.min(version, known.get(key) ?? version));
  }
  const path = keys.flag(place, '').length;
  for (const [name, flag] of client.getQueriesData<FlagDetail>({ queryKey: keys.flags(place) })) {
    if (!flag || name.length !== path || name[path - 2] !== 'flag') continue;
    known.set(flag.key, Math.min(flag.version, known.get(flag.key) ?? flag.version));
  }
  return known;
}

/** Whether a reading of flags may be another one now: a list elsewhere is not, nor is a flag that is not among the changed ones. What is read of all environments has no versions that say what it knows already. */
export function concerns(queryKey: readonly unknown[], place: Place, changedKeys: Set<string> | undefined): boolean {
  const [, , environment, kind, key] = queryKey;
  if (environment === null) return true;
  if (kind === 'flag') return !changedKeys || changedKeys.has(String(key));
  return environment === place.environment && changedKeys?.size !== 0;
}
