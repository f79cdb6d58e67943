import { createQuery, useQueryClient, type QueryClient } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { Failure } from '../api/failure';
import { session } from '../session/session.svelte';
import { keys } from './keys';

export type Memberships = Schemas['BootstrapData'];

/** What the person has not answered: a tenant that another person added them to, or an invitation to one. */
export type Question = { tenant: string; name: string; by: string; invitation: boolean };

/** The tenants of the person, with the one to begin in. They are read once, and again after an answer. */
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

/** The tenant to begin in: the one that the person used last, or else their first. It is none that they have not answered for. */
export function firstTenant(memberships: Memberships): string | undefined {
  const { tenants, active_tenant_id: active, canonical_tenant_id: canonical } = memberships;
  const own = (id: string) => tenants.some((t) => t.tenant_id === id && t.added_by === null);
  return [active, canonical].find(own);
}

/** Notes that a tenant has been opened, which answers for it. */
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

/** Stays in a tenant or accepts an invitation, or leaves or declines. Call it at a component's start. */
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
