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

/** Returns shell lines with the settings of OpenFeature's OFREP providers. */
export function settingsSnippet({ service, place }: FlagRequest, token: string): string {
  return `export OFREP_ENDPOINT='${service}'
export OFREP_HEADERS='Authorization=Bearer ${token},X-Tenant-ID=${place.tenant},X-Environment=${place.environment}'`;
}

/** Returns a JavaScript program that evaluates a flag with OpenFeature. */
export function programSnippet({ key }: FlagRequest): string {
  return `// npm install @openfeature/server-sdk @openfeature/ofrep-provider
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

await OpenFeature.setProviderAndWait(new OFREPProvider());
await OpenFeature.getClient().getBooleanValue('${key}', false, { targetingKey: 'user-42' });`;
}
