import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type Member = Schemas['MemberBody'];
export type Role = Member['role'];

export const memberName = (member: Member): string => member.displayName || member.email;

/** Reads the members of a tenant, including pending ones. */
export function useMembers(tenant: () => string | undefined) {
  return createQuery(() => ({
    queryKey: keys.members(tenant() ?? ''),
    queryFn: () => body(api.GET('/api/v1/tenants/{tenantId}/users', { params: { path: { tenantId: tenant()! } } })),
    enabled: tenant() !== undefined,
  }));
}

export function useAddMember(tenant: () => string) {
  return useChange(tenant, (member: Schemas['NewMemberBody']) =>
    body(api.POST('/api/v1/tenants/{tenantId}/users', { params: { path: { tenantId: tenant() } }, body: member })),
  );
}

/** Changes a member's role, one change after the other, so that the last one wins. */
export function useChangeRole(tenant: () => string) {
  return useChange(
    tenant,
    ({ userId, role }: { userId: string; role: Role }) =>
      body(
        api.PATCH('/api/v1/tenants/{tenantId}/users/{userId}', {
          params: { path: { tenantId: tenant(), userId } },
          body: { role },
        }),
      ),
    'role',
  );
}

/** Removes a member. A person who removes themselves leaves the tenant. */
export function useRemoveMember(tenant: () => string) {
  return useChange(tenant, (userId: string) =>
    body(api.DELETE('/api/v1/tenants/{tenantId}/users/{userId}', { params: { path: { tenantId: tenant(), userId } } })),
  );
}

function useChange<Change, Made>(tenant: () => string, make: (change: Change) => Promise<Made>, scope?: string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    scope: scope ? { id: scope } : undefined,
    // A person who left is redirected to another tenant.
    onMutate: tenant,
    onSettled: (_made, _error, _change, there) =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.members(there ?? tenant()) }),
        client.invalidateQueries({ queryKey: keys.tenants }),
      ]),
  }));
}
