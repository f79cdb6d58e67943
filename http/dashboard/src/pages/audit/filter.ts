import type { AuditFilter, PlatformAuditFilter } from '../../queries/audit';
import { asked } from '../../router/asked';

/** What the trail can be narrowed by, as the URL and the API call it. */
const names = ['q', 'userId', 'action', 'resourceType', 'resourceId', 'environment', 'from', 'to'] as const;

/** The filter that a URL asks for. */
export function filterOf(query: URLSearchParams): AuditFilter {
  return asked(query, names) as AuditFilter;
}

/** The same of the platform's trail, which can be narrowed to a tenant. */
export function platformFilterOf(query: URLSearchParams): PlatformAuditFilter {
  const tenantId = query.get('tenantId');
  return { ...filterOf(query), ...(tenantId && { tenantId }) };
}
