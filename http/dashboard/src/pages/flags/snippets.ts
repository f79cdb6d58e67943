import type { Place } from '../../api/client';

export type FlagRequest = { origin: string; place: Place; key: string };

/** A line for a shell that asks for a flag. */
export function curlSnippet({ origin, place, key }: FlagRequest, token: string): string {
  return `curl ${origin}/api/v1/flags/${encodeURIComponent(key)}/evaluate \\
  -H 'Authorization: Bearer ${token}' \\
  -H 'X-Tenant-ID: ${place.tenant}' \\
  -H 'X-Environment: ${place.environment}' \\
  -H 'Content-Type: application/json' \\
  -d '{"targetingKey":"user-42"}'`;
}

/** What OpenFeature's OFREP providers read from the environment, with a program that asks for a flag. */
export function openFeatureSnippet({ origin, place, key }: FlagRequest, token: string): string {
  return `export OFREP_ENDPOINT='${origin}'
export OFREP_HEADERS='Authorization=Bearer ${token},X-Tenant-ID=${place.tenant},X-Environment=${place.environment}'

// npm install @openfeature/server-sdk @openfeature/ofrep-provider
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

await OpenFeature.setProviderAndWait(new OFREPProvider());
await OpenFeature.getClient().getBooleanValue('${key}', false, { targetingKey: 'user-42' });`;
}
