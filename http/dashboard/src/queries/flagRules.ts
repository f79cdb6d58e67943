import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type FlagRules = Schemas['FlagRulesBody'];
export type Naming = NonNullable<FlagRules['naming']>;

/** Reads what a tenant demands of new flags and of changes. */
export function useFlagRules(tenant: () => string) {
  return createQuery(() => ({
    queryKey: keys.flagRules(tenant()),
    queryFn: () => body(api.GET('/api/v1/tenants/{tenantId}/flag-rules', { params: { path: { tenantId: tenant() } } })),
    staleTime: 60_000,
  }));
}

export function useSetFlagRules(tenant: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (rules: FlagRules) =>
      body(
        api.PUT('/api/v1/tenants/{tenantId}/flag-rules', {
          params: { path: { tenantId: tenant() } },
          body: rules,
        }),
      ),
    onMutate: tenant,
    onSettled: (_set, _error, _rules, there) =>
      client.invalidateQueries({ queryKey: keys.flagRules(there ?? tenant()) }),
  }));
}

/** Reports whether a key matches a pattern. A pattern that only the service understands counts as matched. */
export function matchesNaming({ pattern }: Naming, key: string): boolean {
  try {
    return new RegExp(`^(?:${pattern})$`, 'u').test(key);
  } catch {
    return true;
  }
}
