import type { Place } from '../../api/client';

export type FlagRequest = { service: string; place: Place; key: string };

/** Returns a shell command that evaluates a flag. */
export function curlSnippet({ service, place, key }: FlagRequest, token: string): string {
  return `curl ${service}/api/v1/flags/${encodeURIComponent(key)}/evaluate \\
  -H 'Authorization: Bearer ${token}' \\
  -H 'X-Tenant-ID: ${place.tenant}' \\
  -H 'X-Environment: ${place.environment}' \\
  -H 'Content-Type: application/json' \\
  -d '{"targetingKey":"user-42"}'`;
}
