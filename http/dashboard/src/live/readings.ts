import type { QueryClient } from '@tanstack/svelte-query';
import type { FlagDetail } from '../queries/flag';
import type { FlagPage } from '../queries/flags';
import { keys } from '../queries/keys';

/** Returns the versions of the cached flags. A version counts the changes in every environment. */
export function knownVersions(client: QueryClient, tenant: string): Map<string, number> {
  const known = new Map<string, number>();
  const page = keys.flagPage({ tenant, environment: '' }, {}, 0).length;
  const flag = keys.flag({ tenant, environment: '' }, '').length;
  for (const { queryKey, state } of client
    .getQueryCache()
    .findAll({ queryKey: keys.tenantFlags(tenant), type: 'active' })) {
    if (!state.data) continue;
    if (queryKey[3] === 'list' && queryKey.length === page) (state.data as FlagPage).flags.forEach(note);
    if (queryKey[3] === 'flag' && queryKey.length === flag) note(state.data as FlagDetail);
  }
  return known;

  function note({ key, version }: { key: string; version: number }): void {
    known.set(key, Math.min(version, known.get(key) ?? version));
  }
}

/** Whether a query may be stale after changes of these flags. Data about all environments has no versions, so it always counts.
 *  Nor has what a flag serves: named are all flags of an event, also those that refer to a changed segment. */
export function concerns(
  queryKey: readonly unknown[],
  changedKeys: Set<string> | undefined,
  named: Set<string> | undefined,
): boolean {
  const [, , environment, kind, key, part] = queryKey;
  if (environment === null) return true;
  if (part === 'explained' && named?.has(String(key))) return true;
  if (kind === 'flag') return !changedKeys || changedKeys.has(String(key));
  return changedKeys?.size !== 0;
}
