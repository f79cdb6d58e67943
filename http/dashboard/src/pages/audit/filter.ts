import type { AuditFilter, PlatformAuditFilter } from '../../queries/audit';
import { queryValues } from '../../router/queryValues';

/** The filter's names in the URL and the API. */
const names = ['q', 'userId', 'action', 'resourceType', 'resourceId', 'environment', 'from', 'to'] as const;

/** Returns the filter of a URL. */
export function filterOf(query: URLSearchParams): AuditFilter {
  return queryValues(query, names) as AuditFilter;
}

/** Returns the filter of the platform's trail, which also has a tenant. */
export function platformFilterOf(query: URLSearchParams): PlatformAuditFilter {
  const tenantId = query.get('tenantId');
  return { ...filterOf(query), ...(tenantId && { tenantId }) };
}
