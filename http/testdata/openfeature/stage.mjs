// What the tests of both SDKs share: where the service is, and how its answers are compared.
import assert from 'node:assert/strict';

export const { SERVICE_URL: baseUrl, SERVICE_TOKEN: token, SERVICE_TENANT: tenant } = process.env;

export const headersOf = (more = {}) => Object.entries({ Authorization: `Bearer ${token}`, 'X-Tenant-ID': tenant, ...more });

// told checks what a client was told of a flag.
export function told(details, { value, reason, variant, errorCode }) {
  const { flagKey } = details;
  assert.deepEqual(
    { flagKey, value: details.value, reason: details.reason, variant: details.variant, errorCode: details.errorCode },
    { flagKey, value, reason, variant, errorCode },
  );
  if (errorCode !== 'GENERAL') {
    // of some of those the provider itself says nothing
    assert.equal(Boolean(details.errorMessage), Boolean(errorCode), `${flagKey}: the error is explained: ${details.errorMessage}`);
  }
}

// change makes a call to the service's own interface.
export async function change(method, path, body) {
  const response = await fetch(baseUrl + path, {
    method,
    headers: [...headersOf(), ['Content-Type', 'application/json']],
    body: JSON.stringify(body),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
}
