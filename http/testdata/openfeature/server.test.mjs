// The official server SDK with its OFREP provider, on the flags that setStage of openfeature_test.go makes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';
import { baseUrl, headersOf, told } from './stage.mjs';

const user = { targetingKey: 'user-42' };
const pro = { ...user, plan: 'pro' };

let clients = 0;
async function client(more = {}, url = baseUrl) {
  const domain = `server-${clients++}`;
  await OpenFeature.setProviderAndWait(domain, new OFREPProvider({ baseUrl: url, headers: headersOf(more) }));
  return OpenFeature.getClient(domain);
}

test('values of all types', async () => {
  const c = await client();
  for (const context of [{}, user, pro]) {
    told(await c.getBooleanDetails('boolean', false, context), { value: true, reason: 'STATIC' });
    told(await c.getStringDetails('string', 'code', context), { value: 'text', reason: 'STATIC' });
    told(await c.getNumberDetails('integer', 0, context), { value: 42, reason: 'STATIC' });
    told(await c.getNumberDetails('float', 0, context), { value: 1.5, reason: 'STATIC' });
    told(await c.getObjectDetails('object', {}, context), { value: { list: [1, 'two', null] }, reason: 'STATIC' });
  }
});

test('all reasons', async () => {
  const c = await client();
  told(await c.getStringDetails('ruled', 'code', pro), { value: 'yes', reason: 'TARGETING_MATCH', variant: 'on' });
  told(await c.getStringDetails('ruled', 'code', user), { value: 'rest', reason: 'DEFAULT' });
  told(await c.getStringDetails('split', 'code', user), { value: 'yes', reason: 'SPLIT', variant: 'on' });
  told(await c.getStringDetails('by-company', 'code', { ...pro, company: { id: 'c-7' } }), { value: 'yes', reason: 'SPLIT', variant: 'on' });
  told(await c.getBooleanDetails('disabled', false, user), { value: true, reason: 'DISABLED' });
  const { flagMetadata } = await c.getStringDetails('ruled', 'code', pro);
  assert.deepEqual(Object.keys(flagMetadata).sort(), ['flagSetId', 'flagVersion', 'ruleId', 'variationId', 'version']);
  assert.equal(flagMetadata.flagVersion, 3);
  assert.equal(flagMetadata.version, '3');
});

test('all errors', async () => {
  const c = await client();
  const failed = (errorCode) => ({ value: 'code', reason: 'ERROR', errorCode });
  told(await c.getStringDetails('none', 'code', user), failed('FLAG_NOT_FOUND'));
  told(await c.getStringDetails('archived', 'code', user), failed('FLAG_NOT_FOUND'));
  told(await c.getStringDetails('split', 'code', {}), failed('TARGETING_KEY_MISSING'));
  told(await c.getStringDetails('by-company', 'code', pro), failed('INVALID_CONTEXT'));
  told(await c.getStringDetails('string', 'code', { targetingKey: 7 }), failed('INVALID_CONTEXT'));
  told(await c.getStringDetails('string', 'code', { ...user, name: 'a\u0000b' }), failed('PARSE_ERROR'));
  told(await c.getStringDetails('string', 'code', { ...user, name: '\ud800' }), failed('PARSE_ERROR'));
  told(await c.getStringDetails('boolean', 'code', user), failed('TYPE_MISMATCH'));
  for (const headers of [{ Authorization: 'Bearer none' }, { Authorization: '' }, { 'X-Tenant-ID': 'none' }, { 'X-Environment': 'none' }]) {
    told(await (await client(headers)).getStringDetails('string', 'code', user), failed('GENERAL'));
  }
});

test('another environment', async () => {
  const c = await client({ 'X-Environment': 'development' });
  told(await c.getStringDetails('string', 'code', user), { value: 'text', reason: 'DISABLED' });
});

test('a client that is over its limit pauses as long as Retry-After says', async () => {
  const { LIMITED_URL: url, LIMITED_TOKEN: token, LIMITED_TENANT: tenant } = process.env;
  const c = await client({ Authorization: `Bearer ${token}`, 'X-Tenant-ID': tenant }, url);
  let details;
  do {
    details = await c.getStringDetails('none', 'code', user);
  } while (details.errorCode === 'FLAG_NOT_FOUND');
  told(details, { value: 'code', reason: 'ERROR', errorCode: 'GENERAL' });
  assert.match(details.errorMessage, /rate limit exceeded, try again after/);
  const paused = await c.getStringDetails('none', 'code', user);
  assert.match(paused.errorMessage, /paused due to TooManyRequests until/);
  const seconds = (new Date(paused.errorMessage.split('until ')[1]) - Date.now()) / 1000;
  assert.ok(seconds > 0 && seconds <= 60, `it pauses for ${seconds} s`);
});
