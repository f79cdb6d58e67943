import { createInfiniteQuery, createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { answer, api, body, type Schemas } from '../api/client';
import { keys } from './keys';

export type PlatformUser = Schemas['PlatformUserBody'];
export type PlatformRole = NonNullable<PlatformUser['role']>;
export type Invitation = Schemas['InvitationBody'];
export type ServiceStatus = Schemas['ServiceStatusBody'];

const pageSize = 50;

/** Returns the person's role on the platform: null for none, undefined while unknown. */
export function usePlatformRole(): () => PlatformRole | null | undefined {
  const role = createQuery(() => ({
    queryKey: [...keys.platform, 'role'],
    queryFn: () => body(api.GET('/api/v1/admin/role')),
    staleTime: 5 * 60_000,
  }));
  return () => role.data?.role;
}

/** Reads the people whose name or address contains a text, page by page. */
export const usePeople = (q: () => string) =>
  useList('people', q, (query, signal) => answer(api.GET('/api/v1/admin/users', { params: { query }, signal })));

/** Reads the tenants whose name or address contains a text, page by page. */
export const usePlatformTenants = (q: () => string) =>
  useList('tenants', q, (query, signal) => answer(api.GET('/api/v1/admin/tenants', { params: { query }, signal })));

type Query = { q?: string; limit: number; offset: number };
type Page<T> = { rows: T[]; total: number };

function useList<T>(
  name: string,
  q: () => string,
  read: (query: Query, signal: AbortSignal) => Promise<{ body: T[]; headers: Headers }>,
) {
  return createInfiniteQuery(() => ({
    queryKey: [...keys.platform, name, q()],
    queryFn: async ({ pageParam, signal }: { pageParam: number; signal: AbortSignal }): Promise<Page<T>> => {
      const { body: rows, headers } = await read({ q: q() || undefined, limit: pageSize, offset: pageParam }, signal);
      return { rows, total: Number(headers.get('X-Total-Count') ?? rows.length) };
    },
    initialPageParam: 0,
    getNextPageParam: (last: Page<T>, pages: Page<T>[]) => {
      const read = pages.reduce((n, { rows }) => n + rows.length, 0);
      return last.rows.length && read < last.total ? read : undefined;
    },
    placeholderData: (before: { pages: Page<T>[]; pageParams: number[] } | undefined) => before,
  }));
}

/** Reads the name of a tenant, which may be deleted. It is empty if there is none. */
export function useTenantName(id: () => string | undefined) {
  return createQuery(() => ({
    queryKey: [...keys.platform, 'tenant name', id()],
    queryFn: async () => {
      const found = await body(api.GET('/api/v1/admin/tenants', { params: { query: { q: id(), limit: 1 } } }));
      return found[0]?.name ?? '';
    },
    enabled: id() !== undefined,
  }));
}

/** Deactivates or reactivates a person. */
export function useSetActive() {
  return useChange(({ userId, active }: { userId: string; active: boolean }) => {
    const call = { params: { path: { userId } } };
    return body(
      active
        ? api.PATCH('/api/v1/admin/users/{userId}/reactivate', call)
        : api.PATCH('/api/v1/admin/users/{userId}/deactivate', call),
    );
  });
}

/** Changes a person's platform role, one change after the other; null removes it. */
export function useGivePlatformRole() {
  return useChange(
    ({ userId, role }: { userId: string; role: PlatformRole | null }) =>
      body(api.PATCH('/api/v1/admin/users/{userId}/role', { params: { path: { userId } }, body: { role } })),
    'platform role',
  );
}

/** Reads the platform's invitations, newest first. */
export function useInvitations(enabled: () => boolean = () => true) {
  return createQuery(() => ({
    queryKey: [...keys.platform, 'invitations'],
    enabled: enabled(),
    queryFn: async () => (await body(api.GET('/api/v1/admin/invitations'))).toReversed(),
  }));
}

export function useInvite() {
  return useChange((invitation: { email: string; role: 'viewer' | 'admin' }) =>
    body(api.POST('/api/v1/admin/invitations', { body: invitation })),
  );
}

export function useRevokeInvitation() {
  return useChange((invitationId: string) =>
    body(api.DELETE('/api/v1/admin/invitations/{invitationId}', { params: { path: { invitationId } } })),
  );
}

export function useResendInvitation() {
  return useChange((invitationId: string) =>
    body(api.POST('/api/v1/admin/invitations/{invitationId}/resend', { params: { path: { invitationId } } })),
  );
}

function useChange<Change, Made>(make: (change: Change) => Promise<Made>, scope?: string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    scope: scope ? { id: scope } : undefined,
    onSettled: () => client.invalidateQueries({ queryKey: keys.platform }),
  }));
}

/** Reads the status of the service every few seconds. */
export function useServiceStatus() {
  return createQuery(() => ({
    queryKey: [...keys.platform, 'status'],
    queryFn: () => body(api.GET('/api/v1/admin/status')),
    refetchInterval: 3_000,
  }));
}
