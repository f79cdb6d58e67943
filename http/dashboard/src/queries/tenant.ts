import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, body, type Place, type Schemas } from '../api/client';
import { keys } from './keys';
import { reasonHeader } from './reason';

/** Changes fields of a tenant. */
export function useUpdateTenant(tenant: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (changes: Schemas['UpdateTenantBody']) =>
      body(api.PATCH('/api/v1/tenants/{tenantId}', { params: { path: { tenantId: tenant() } }, body: changes })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.tenants }),
  }));
}

/** Creates a tenant. */
export function useCreateTenant() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (made: Schemas['CreateTenantBody']) => body(api.POST('/api/v1/tenants', { body: made })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.tenants }),
  }));
}

/** Deletes a tenant, and calls deleted once the person's memberships lack it. */
export function useDeleteTenant(tenant: () => string, deleted: () => void) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () => body(api.DELETE('/api/v1/tenants/{tenantId}', { params: { path: { tenantId: tenant() } } })),
    onSuccess: async () => {
      await client.refetchQueries({ queryKey: keys.memberships });
      deleted();
      await client.invalidateQueries({ queryKey: keys.tenants });
    },
  }));
}

/** Reads until when a sandbox takes changes. */
export function useSandbox(tenant: () => string) {
  return createQuery(() => ({
    queryKey: keys.sandbox(tenant()),
    queryFn: () => body(api.GET('/api/v1/sandbox/status', { params: { header: { 'X-Tenant-ID': tenant() } } })),
    staleTime: 60_000,
  }));
}

/** Resets a sandbox to its demo data. */
export function useResetSandbox(tenant: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () =>
      body(api.POST('/api/v1/sandbox/cleanup/tenant', { params: { header: { 'X-Tenant-ID': tenant() } } })),
    onSettled: () => client.invalidateQueries(),
  }));
}

export type Revert = { at: string; environment?: string; reason: string };
/** What a revert changed, and the failure that ended it early. */
export type Reverted = Pick<Schemas['RevertedFlagsBody'], 'reverted' | 'restored' | 'createdSince' | 'failed'> & {
  failure?: unknown;
};

/** Reverts the flags of a tenant, or only says what that would do. */
export function useRevertTenant(place: () => Place) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: ({ dryRun, ...revert }: Revert & { dryRun: boolean }) => revertAll(place().tenant, revert, dryRun),
    onMutate: place,
    onSettled: async (_made, _error, { dryRun }, there) => {
      if (dryRun) return;
      const { tenant } = there ?? place();
      await client.invalidateQueries({ queryKey: keys.tenantFlags(tenant) });
      await client.invalidateQueries({ queryKey: keys.trail(tenant) });
    },
  }));
}

// A call reverts a limited number of flags, and the response has a cursor for the next call. Only the first one's failure
// is thrown: later, flags are reverted already.
async function revertAll(tenant: string, { at, environment, reason }: Revert, dryRun: boolean): Promise<Reverted> {
  const all: Reverted = { reverted: [], restored: [], createdSince: [], failed: [] };
  const header = { 'X-Tenant-ID': tenant, ...reasonHeader(reason) };
  for (let cursor: string | null | undefined; cursor !== null;) {
    let part: Schemas['RevertedFlagsBody'];
    try {
      part = await body(
        api.POST('/api/v1/flags/revert', { params: { header }, body: { at, environment, dryRun, cursor } }),
      );
    } catch (failure) {
      if (dryRun || !cursor) throw failure;
      return { ...all, failure };
    }
    all.reverted.push(...part.reverted);
    all.restored.push(...part.restored);
    all.createdSince.push(...part.createdSince);
    all.failed.push(...part.failed);
    cursor = part.cursor;
  }
  return all;
}
