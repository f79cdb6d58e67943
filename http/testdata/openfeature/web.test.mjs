// The official web SDK with its OFREP provider, on the flags that setStage of openfeature_test.go makes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventSource } from 'eventsource';
import { OpenFeature, ProviderEvents, ProviderStatus } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';
import { baseUrl, change, headersOf, told } from './stage.mjs';

const user = { targetingKey: 'user-42' };
const pro = { ...user, plan: 'pro' };

// client makes a client whose provider's calls are written down. seen(status) waits for an answer with that status from now on.
let clients = 0;
async function client(t, context, { headers = {}, ...options } = {}) {
  const domain = `web-${clients++}`;
  const calls = [];
  const waiting = [];
  const provider = new OFREPWebProvider({
    baseUrl,
    headers: headersOf(headers),
    cacheMode: 'disabled',
    ...options,
    fetchImplementation: async (request, init) => {
      const response = await fetch(request, init);
      calls.push({
        status: response.status,
        etag: response.headers.get('ETag'),
        sent: request.headers.get('If-None-Match'),
        query: new URL(request.url).searchParams,
      });
      waiting.splice(0).forEach((look) => look(response.status));
      return response;
    },
  });
  const seen = (status) =>
    new Promise((resolve) => {
      const look = (got) => (got === status ? resolve() : waiting.push(look));
      waiting.push(look);
    });
  t.after(() => provider.onClose());
  await OpenFeature.setContext(domain, context);
  await OpenFeature.setProviderAndWait(domain, provider);
  const c = OpenFeature.getClient(domain);
  const changed = () => new Promise((resolve) => c.addHandler(ProviderEvents.ConfigurationChanged, resolve));
  return { c, domain, calls, seen, changed };
}

test('values of all types, from one call', async (t) => {
  for (const context of [{}, user]) {
    const { c, calls } = await client(t, context);
    told(c.getBooleanDetails('boolean', false), { value: true, reason: 'STATIC' });
    told(c.getStringDetails('string', 'code'), { value: 'text', reason: 'STATIC' });
    told(c.getNumberDetails('integer', 0), { value: 42, reason: 'STATIC' });
    told(c.getNumberDetails('float', 0), { value: 1.5, reason: 'STATIC' });
    told(c.getObjectDetails('object', {}), { value: { list: [1, 'two', null] }, reason: 'STATIC' });
    assert.deepEqual(calls.map(({ status, sent }) => [status, sent]), [[200, null]]);
  }
});

test('all reasons', async (t) => {
  const { c } = await client(t, { ...pro, company: { id: 'c-7' } });
  told(c.getStringDetails('ruled', 'code'), { value: 'yes', reason: 'TARGETING_MATCH', variant: 'on' });
  told(c.getStringDetails('split', 'code'), { value: 'yes', reason: 'SPLIT', variant: 'on' });
  told(c.getStringDetails('by-company', 'code'), { value: 'yes', reason: 'SPLIT', variant: 'on' });
  told(c.getBooleanDetails('disabled', false), { value: true, reason: 'DISABLED' });
  const other = await client(t, user);
  told(other.c.getStringDetails('ruled', 'code'), { value: 'rest', reason: 'DEFAULT' });
});

test('errors of a flag', async (t) => {
  const failed = (errorCode) => ({ value: 'code', reason: 'ERROR', errorCode });
  const { c } = await client(t, { plan: 'pro' });
  told(c.getStringDetails('none', 'code'), failed('FLAG_NOT_FOUND'));
  told(c.getStringDetails('archived', 'code'), failed('FLAG_NOT_FOUND'));
  told(c.getStringDetails('split', 'code'), failed('TARGETING_KEY_MISSING'));
  told(c.getStringDetails('by-company', 'code'), failed('INVALID_CONTEXT'));
  told(c.getStringDetails('boolean', 'code'), failed('TYPE_MISMATCH'));
  told(c.getStringDetails('string', 'code'), { value: 'text', reason: 'STATIC' });
});

test('errors of a call', async (t) => {
  for (const [context, headers, status] of [
    [user, { Authorization: 'Bearer none' }, ProviderStatus.FATAL],
    [user, { 'X-Tenant-ID': 'none' }, ProviderStatus.FATAL],
    [user, { 'X-Environment': 'none' }, ProviderStatus.ERROR],
    [{ targetingKey: 7 }, {}, ProviderStatus.ERROR],
    [{ ...user, name: 'a\u0000b' }, {}, ProviderStatus.ERROR],
  ]) {
    await assert.rejects(client(t, context, { headers }));
    assert.equal(OpenFeature.getClient(`web-${clients - 1}`).providerStatus, status);
  }
});

test('polling sees nothing new, and then a change', async (t) => {
  await change('POST', '/api/v1/flags', { key: 'polled', type: 'string', defaultValue: 'first' });
  const { c, calls, seen, changed } = await client(t, user, { pollInterval: 20 });
  assert.equal(c.getStringValue('polled', 'code'), 'first');
  await seen(304);
  await seen(304);
  assert.deepEqual(calls.slice(0, 3).map(({ status, sent }) => [status, sent]), [[200, null], [304, calls[0].etag], [304, calls[0].etag]]);
  assert.equal(c.getStringValue('polled', 'code'), 'first');
  const event = changed();
  await change('PATCH', '/api/v1/flags/polled', { defaultValue: 'second' });
  assert.deepEqual((await event).flagsChanged, ['polled']);
  assert.equal(c.getStringValue('polled', 'code'), 'second');
  await seen(304);
  assert.notEqual(calls.at(-1).etag, calls[0].etag);
});

test('a change of the context is answered anew, though the provider sends the old tag', async (t) => {
  const { c, domain, calls } = await client(t, user);
  assert.equal(c.getStringValue('ruled', 'code'), 'rest');
  await OpenFeature.setContext(domain, pro);
  assert.equal(c.getStringValue('ruled', 'code'), 'yes');
  await OpenFeature.setContext(domain, { ...pro, nobody: 'asks' });
  assert.equal(c.getStringValue('ruled', 'code'), 'yes');
  await OpenFeature.setContext(domain, { targetingKey: 'user-43' });
  assert.equal(c.getStringValue('ruled', 'code'), 'rest');
  assert.deepEqual(calls.map(({ status, sent }) => [status, sent]), [[200, null], [200, calls[0].etag], [304, calls[1].etag], [200, null]]);
});

// browser gives the provider what browsers have and Node.js lacks. connected() waits until as many streams have been told that they are.
function browser(t) {
  const streams = [];
  const waiting = [];
  let told = 0;
  globalThis.EventSource = class extends EventSource {
    constructor(url) {
      super(url);
      streams.push(this);
      this.addEventListener('message', ({ data }) => {
        if (JSON.parse(data).type === 'connected') {
          told++;
          waiting.splice(0).forEach((look) => look());
        }
      });
    }
  };
  t.after(() => delete globalThis.EventSource);
  const connected = (count) =>
    new Promise((resolve) => {
      const look = () => (told >= count ? resolve() : waiting.push(look));
      look();
    });
  return { streams, connected };
}

test('a change is heard, without polling', async (t) => {
  await change('POST', '/api/v1/flags', { key: 'streamed', type: 'string', defaultValue: 'first' });
  const { streams, connected } = browser(t);
  const { c, calls, changed } = await client(t, user);
  await connected(1);
  for (const value of ['second', 'third']) {
    const event = changed();
    await change('PATCH', '/api/v1/flags/streamed', { defaultValue: value });
    assert.deepEqual((await event).flagsChanged, ['streamed']);
    assert.equal(c.getStringValue('streamed', 'code'), value);
  }
  assert.deepEqual(calls.map(({ status, sent }) => [status, sent]), [[200, null], [200, calls[0].etag], [200, calls[1].etag]]);
  assert.ok(calls[1].query.get('flagConfigEtag') && Math.abs(Date.now() / 1000 - calls[1].query.get('flagConfigLastModified')) < 60);
  assert.equal(streams.length, 1);
});

test('a change that makes no difference to the user is answered with 304', async (t) => {
  const { connected } = browser(t);
  const { calls, seen } = await client(t, user);
  await connected(1);
  const unchanged = seen(304);
  await change('PATCH', '/api/v1/flags/archived', { name: 'Still archived' });
  await unchanged;
  assert.deepEqual(calls.map(({ status }) => status), [200, 304]);
});

test('a change of the context goes on with the stream that is open', async (t) => {
  const { streams, connected } = browser(t);
  const { c, domain, changed } = await client(t, user);
  await connected(1);
  await OpenFeature.setContext(domain, pro);
  const event = changed();
  await change('PATCH', '/api/v1/flags/streamed', { defaultValue: 'for everybody' });
  await event;
  assert.equal(c.getStringValue('streamed', 'code'), 'for everybody');
  assert.equal(streams.length, 1);
});

test('what changes while there is no stream is heard when it is open again', async (t) => {
  const { streams, connected } = browser(t);
  const { c, changed } = await client(t, user);
  await connected(1);
  await new Promise((resolve) => streams[0].addEventListener('error', resolve)); // the service ends it after a second
  const event = changed();
  await change('PATCH', '/api/v1/flags/streamed', { defaultValue: 'meanwhile' });
  assert.deepEqual((await event).flagsChanged, ['streamed']);
  assert.equal(c.getStringValue('streamed', 'code'), 'meanwhile');
  await connected(2);
  assert.equal(streams.length, 1);
});
