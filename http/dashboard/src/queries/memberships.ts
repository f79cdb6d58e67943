import { createQuery, useQueryClient, type QueryClient } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { Failure } from '../api/failure';
import { session } from '../session/session.svelte';
import { keys } from './keys';

export type Memberships = Schemas['BootstrapData'];

/** An unanswered membership: a tenant that another person added the person to, or an invitation. */
export type Question = { tenant: string; name: string; by: string; invitation: boolean };

/** Reads the person's tenants and unanswered memberships, once and after each answer. */
export function useMemberships() {
  return createQuery(() => ({
    queryKey: keys.memberships,
    queryFn: async () => {
      const idToken = await session.token();
      if (!idToken) throw new Failure(401); // they have signed out meanwhile
      return (await body(api.POST('/api/v1/auth/login', { body: { idToken } }))).data;
    },
    staleTime: Infinity,
  }));
}

export function questionsOf({ tenants, invitations }: Memberships): Question[] {
  const added = tenants.flatMap(({ tenant_id: tenant, tenant_name: name, added_by: by }) =>
    by === null ? [] : [{ tenant, name, by, invitation: false }],
  );
  const invited = invitations.map(({ tenant_id: tenant, tenant_name: name, invited_by: by }) => ({
    tenant,
    name,
    by,
    invitation: true,
  }));
  return [...added, ...invited];
}

/** Returns the tenant to start in: the last one used, or the first. It skips unanswered ones. */
export function firstTenant(memberships: Memberships): string | undefined {
  const { tenants, active_tenant_id: active, canonical_tenant_id: canonical } = memberships;
  const own = (id: string) => tenants.some((t) => t.tenant_id === id && t.added_by === null);
  return [active, canonical].find(own);
}

/** Records that a tenant has been opened, which counts as an answer. */
export function noteOpened(client: QueryClient, tenant: string): void {
  client.setQueryData<Memberships>(
    keys.memberships,
    (before) =>
      before && {
        ...before,
        tenants: before.tenants.map((t) => (t.tenant_id === tenant ? { ...t, added_by: null } : t)),
      },
  );
}

/** Answers a membership: stays or accepts, or leaves or declines. Call it when a component starts. */
export function useAnswer(): (tenant: string, stay: boolean) => Promise<void> {
  const client = useQueryClient();
  return async (tenant, stay) => {
    const params = { path: { tenantId: tenant } };
    await (stay
      ? body(api.POST('/api/v1/tenants/{tenantId}/membership/accept', { params }))
      : body(api.POST('/api/v1/tenants/{tenantId}/membership/decline', { params })));
    await client.invalidateQueries({ queryKey: keys.tenants });
  };
}
