import type { Place } from '../api/client';

/** The names under which readings are kept. A change makes stale all that begins with the name that it gives. */
export const keys = {
  tenants: ['tenants'] as const,
  environments: (tenant: string) => ['environments', tenant] as const,
  notifications: ['notifications'] as const,
  members: (tenant: string) => ['members', tenant] as const,
  clients: (tenant: string) => ['clients', tenant] as const,
  audit: (tenant: string, filter: object) => ['audit', tenant, filter] as const,
  usage: (tenant: string) => ['usage', tenant] as const,
  cleanup: (tenant: string) => ['cleanup', tenant] as const,
  projects: (tenant: string) => ['projects', tenant] as const,
  /** All that is read of flags at a place. */
  flags: (place: Place) => ['flags', place.tenant, place.environment] as const,
  /** All that is read of flags in a tenant. */
  tenantFlags: (tenant: string) => ['flags', tenant] as const,
  flagList: (place: Place, filter: object) => [...keys.flags(place), 'list', filter] as const,
  flagPage: (place: Place, filter: object, page: number) => [...keys.flagList(place, filter), page] as const,
  flag: (place: Place, key: string) => [...keys.flags(place), 'flag', key] as const,
};
