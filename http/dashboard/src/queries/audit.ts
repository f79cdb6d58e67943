import { createInfiniteQuery } from '@tanstack/svelte-query';
import { answer, api, at, authorized, body, type Place, type Schemas } from '../api/client';
import { exactAnswer } from '../api/exact';
import { failureOf } from '../api/failure';
import type { operations } from '../api/schema';
import { service } from '../service';
import { session } from '../session/session.svelte';
import { keys } from './keys';

export type Entry = Schemas['AuditEntryBody'] & { tenantId?: string | null };

type Query = NonNullable<operations['get-audit-trail']['parameters']['query']>;

/** The filter of a trail. */
export type AuditFilter = Omit<Query, 'limit' | 'cursor'>;

const pageSize = 50;

type Page = { entries: Entry[]; next?: string };

/** Reads the trail of the platform and all tenants, or with tenantId of one tenant. */
export type PlatformAuditFilter = AuditFilter & { tenantId?: string };

/** Reads the trail of a tenant, newest first, page by page. */
export const useAudit = (place: () => Place, filter: () => AuditFilter) =>
  useTrail(
    () => keys.audit(place().tenant, filter()),
    (page, signal) =>
      exactAnswer(
        api.GET('/api/v1/audit', {
          params: { header: at(place()), query: { ...filter(), ...page } },
          parseAs: 'text',
          signal,
        }),
      ),
  );

export const usePlatformAudit = (filter: () => PlatformAuditFilter) =>
  useTrail(
    () => [...keys.platform, 'audit', filter()],
    (page, signal) =>
      exactAnswer(
        api.GET('/api/v1/admin/audit', { params: { query: { ...filter(), ...page } }, parseAs: 'text', signal }),
      ),
  );

/** What useAudit and usePlatformAudit return. */
export type Trail = ReturnType<typeof useTrail>;

// The old results stay visible while another filter loads.
function useTrail(
  key: () => readonly unknown[],
  read: (page: Pick<Query, 'limit' | 'cursor'>, signal: AbortSignal) => Promise<{ body: Entry[]; headers: Headers }>,
) {
  return createInfiniteQuery(() => ({
    queryKey: key(),
    queryFn: async ({ pageParam, signal }: { pageParam: string | undefined; signal: AbortSignal }): Promise<Page> => {
      const { body: entries, headers } = await read({ limit: pageSize, cursor: pageParam }, signal);
      const link = /<([^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1];
      const next = link && new URL(link, location.origin).searchParams.get('cursor');
      return { entries, next: next || undefined };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page) => page.next,
    placeholderData: (before: { pages: Page[]; pageParams: (string | undefined)[] } | undefined) => before,
    structuralSharing: false,
  }));
}

// The service ends a response when its token expires, so a long one starts with a fresh token.
const long = 10 * 60_000; // milliseconds

/** Reads the whole filtered trail as a file. */
export async function readExport(place: Place, filter: AuditFilter, format: 'ndjson' | 'csv'): Promise<Blob> {
  await session.token(long);
  const { body: file } = await answer(
    api.GET('/api/v1/audit/export', {
      params: { header: at(place), query: { ...filter, format } },
      parseAs: 'blob',
    }),
  );
  return file as Blob;
}

/** Reads the key that verifies checkpoints. */
export const readAuditKey = (place: Place): Promise<string> =>
  body(api.GET('/api/v1/audit/key', { params: { header: at(place) }, parseAs: 'text' }));

/** Reads a signed statement of the trail's current content. */
export const readCheckpoint = (place: Place): Promise<string> =>
  body(api.GET('/api/v1/audit/checkpoint', { params: { header: at(place) }, parseAs: 'text' }));

/** Reads the proof that a trail of a size begins with a smaller one. */
export const readConsistency = (place: Place, from: number, size: number): Promise<Schemas['AuditConsistencyBody']> =>
  body(api.GET('/api/v1/audit/consistency', { params: { header: at(place), query: { from, size } } }));

/** Reads all facts as stored, as a stream. Only admins may. */
export async function readFacts(place: Place): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  await session.token(long);
  const response = await authorized(new Request(`${service}/api/v1/audit/facts`, { headers: at(place) }));
  if (!response.ok || !response.body) throw failureOf(response, await response.json().catch(() => undefined));
  return response.body;
}
