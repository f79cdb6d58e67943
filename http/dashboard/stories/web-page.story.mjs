// A web page of another origin evaluates with a browser key and OpenFeature's official provider.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const { OPENFEATURE: folder, SHOP_URL: service, CONTROL_URL: control } = process.env;
const provider = '@openfeature/ofrep-web-provider';
const modules = {
  '@openfeature/core': '@openfeature/core/dist/esm/index.js',
  '@openfeature/web-sdk': '@openfeature/web-sdk/dist/esm/index.js',
  '@openfeature/ofrep-core': `${provider}/node_modules/@openfeature/ofrep-core/index.esm.js`,
  [provider]: `${provider}/index.esm.js`,
};
const imports = Object.fromEntries(Object.keys(modules).map((name) => [name, `/modules/${name}`]));

const html = (key) => `<!doctype html><title>Shop</title><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  import { OpenFeature, ProviderEvents } from '@openfeature/web-sdk';
  import { OFREPWebProvider } from '${provider}';
  const provider = new OFREPWebProvider({ baseUrl: '${service}', headers: [['Authorization', 'Bearer ${key}']] });
  await OpenFeature.setContext({ targetingKey: 'user-42' });
  await OpenFeature.setProviderAndWait(provider);
  window.changed = () => new Promise((resolve) => {
    const handler = () => {
      OpenFeature.removeHandler(ProviderEvents.ConfigurationChanged, handler);
      resolve(Date.now());
    };
    OpenFeature.addHandler(ProviderEvents.ConfigurationChanged, handler);
  });
  window.served = () => OpenFeature.getClient().getBooleanDetails('banner', false);
</script>`;

/** Serves the page and its modules, and calls use with its address. */
async function serveShop(key, use) {
  const server = createServer((request, answer) => {
    const file = modules[request.url.replace(/^\/modules\//, '')];
    answer.setHeader('Content-Type', file ? 'text/javascript' : 'text/html');
    answer.end(file ? readFileSync(join(folder, 'node_modules', file)) : html(key));
  });
  await new Promise((listening) => server.listen(0, 'localhost', listening));
  try {
    await use(`http://localhost:${server.address().port}/`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** Returns how many milliseconds after an acknowledged change the page's event of it came. */
async function delayOf(v, change) {
  const event = v.page.evaluate(() => window.changed());
  await v.page.evaluate(() => 0); // the handler is there
  await change();
  const acknowledged = Date.now();
  return (await event) - acknowledged;
}

const serves = (v, value) =>
  v.until(`the page has ${value}`, () => v.page.evaluate((value) => window.served?.().value === value, value));

const stories = {
  'a page of another origin evaluates, hears of changes, and goes on over a restart': async (come) => {
    const admin = await come({ url: service, refused: ['net::ERR_', 502] });
    await admin.signUp();
    await admin.call('POST', '/api/v1/flags', { key: 'banner', type: 'boolean', clientSide: true });
    await admin.call('POST', '/api/v1/flags/banner/enable', undefined, undefined, 'production');
    const { key } = await admin.call('POST', '/api/v1/evaluation-keys', {
      name: 'Shop',
      kind: 'browser',
      environment: 'production',
      origins: ['http://localhost:*'],
    });
    const order = (what) => fetch(`${control}/${what}?of=shop`, { method: 'POST' });
    await serveShop(key, async (shop) => {
      const v = await come({ url: service, refused: ['net::ERR_', 502] });
      const calls = [];
      v.page.on('request', (r) => r.url().startsWith(service) && r.method() === 'POST' && calls.push(r.url()));
      await v.page.goto(shop);
      await serves(v, true);
      const before = calls.length;
      await admin.call('POST', '/api/v1/flags/banner/disable', undefined, undefined, 'production');
      await serves(v, false);
      if (calls.length !== before + 1) throw new Error(`${calls.length - before} calls for one change: it polls`);

      // A change reaches the page within a second; the limit leaves room for a slow machine.
      const enable = (to) => admin.call('POST', `/api/v1/flags/banner/${to}`, undefined, undefined, 'production');
      const delays = [];
      for (const to of ['enable', 'disable', 'enable', 'disable', 'enable', 'disable', 'enable', 'disable'])
        delays.push(await delayOf(v, () => enable(to)));
      const median = delays.sort((a, b) => a - b)[Math.floor(delays.length / 2)];
      console.log(`web-page: a page sees a change ${median} ms after it was acknowledged (median of ${delays.length})`);
      if (median > 5000) throw new Error(`a page sees a change after ${median} ms`);

      await order('stop');
      await serves(v, false);
      await order('start');
      await enable('enable');
      await serves(v, true); // the open page has connected again
      await order('stop');
      await v.page.reload();
      await serves(v, true); // as persisted
      await order('start');
      await v.page.reload();
      await enable('disable');
      await serves(v, false);
    });
  },
};

export default control ? stories : {};
