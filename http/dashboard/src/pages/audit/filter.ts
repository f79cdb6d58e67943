import type { AuditFilter } from '../../queries/audit';

/** What the trail can be narrowed by, as the URL and the API call it. */
const names = ['q', 'userId', 'action', 'resourceType', 'resourceId', 'environment', 'from', 'to'] as const;

/** The filter that a URL asks for. */
export function filterOf(query: URLSearchParams): AuditFilter {
  const asked = names.map((name) => [name, query.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(asked) as AuditFilter;
}

/** A time of the API as fields for local times have it, and back. */
export function toLocal(time: string | undefined): string {
  const at = time ? new Date(time) : undefined;
  if (!at || Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export const fromLocal = (text: string): string | undefined => (text ? new Date(text).toISOString() : undefined);
