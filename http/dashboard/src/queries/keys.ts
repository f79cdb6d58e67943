import type { Place } from '../api/client';

/** The cache keys of queries. A change invalidates all queries whose key begins with its key. */
export const keys = {
  /** All data of the platform. */
  platform: ['platform'] as const,
  tenants: ['tenants'] as const,
  /** The person's memberships, which change with these. */
  memberships: ['tenants', 'memberships'] as const,
  /** The environments of all tenants. */
  allEnvironments: ['environments'] as const,
  environments: (tenant: string) => [...keys.allEnvironments, tenant] as const,
  tour: ['tour'] as const,
  notifications: ['notifications'] as const,
  flagRules: (tenant: string) => ['flag-rules', tenant] as const,
  sandbox: (tenant: string) => ['sandbox', tenant] as const,
  members: (tenant: string) => ['members', tenant] as const,
  clients: (tenant: string) => ['clients', tenant] as const,
  evaluationKeys: (tenant: string) => ['evaluation-keys', tenant] as const,
  /** All data of a tenant's trail. */
  trail: (tenant: string) => ['audit', tenant] as const,
  audit: (tenant: string, filter: object) => [...keys.trail(tenant), filter] as const,
  usage: (tenant: string) => ['usage', tenant] as const,
  billing: (tenant: string) => ['billing', tenant] as const,
  projects: (tenant: string) => ['projects', tenant] as const,
  /** All data of flags at a place. */
  flags: (place: Place) => ['flags', place.tenant, place.environment] as const,
  /** All data of flags in a tenant. */
  tenantFlags: (tenant: string) => ['flags', tenant] as const,
  /** All data of flags in a tenant without an environment: null replaces its name. */
  everywhere: (tenant: string) => [...keys.tenantFlags(tenant), null] as const,
  /** What all flags of a tenant serve in several environments. */
  served: (tenant: string, asked: object) => [...keys.everywhere(tenant), 'served', asked] as const,
  tags: (tenant: string) => [...keys.everywhere(tenant), 'tags'] as const,
  /** All data of segments. It counts as data of flags: changes of flags change who uses a segment, and the other way round. */
  segments: (tenant: string) => [...keys.everywhere(tenant), 'segments'] as const,
  segment: (tenant: string, key: string) => [...keys.segments(tenant), 'segment', key] as const,
  cleanup: (tenant: string) => [...keys.everywhere(tenant), 'cleanup'] as const,
  flagList: (place: Place, filter: object) => [...keys.flags(place), 'list', filter] as const,
  flagPage: (place: Place, filter: object, page: number) => [...keys.flagList(place, filter), page] as const,
  flag: (place: Place, key: string) => [...keys.flags(place), 'flag', key] as const,
};
