// A web page of another origin evaluates with a browser key and OpenFeature's official provider.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { OPENFEATURE: folder, SHOP_URL: service, CONTROL_URL: control } = process.env;
const origin = 'http://localhost:5173';
const provider = '@openfeature/ofrep-web-provider';
const modules = {
  '@openfeature/core': '@openfeature/core/dist/esm/index.js',
  '@openfeature/web-sdk': '@openfeature/web-sdk/dist/esm/index.js',
  '@openfeature/ofrep-core': `${provider}/node_modules/@openfeature/ofrep-core/index.esm.js`,
  [provider]: `${provider}/index.esm.js`,
};
const imports = Object.fromEntries(Object.keys(modules).map((name) => [name, `${origin}/modules/${name}`]));

const html = (key) => `<!doctype html><title>Shop</title><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  import { OpenFeature } from '@openfeature/web-sdk';
  import { OFREPWebProvider } from '${provider}';
  const provider = new OFREPWebProvider({ baseUrl: '${service}', headers: [['Authorization', 'Bearer ${key}']] });
  await OpenFeature.setContext({ targetingKey: 'user-42' });
  await OpenFeature.setProviderAndWait(provider);
  window.served = () => OpenFeature.getClient().getBooleanDetails('banner', false);
</script>`;

/** Opens the page, whose calls to the service are noted. */
async function openShop(v, key) {
  const calls = [];
  v.page.on('request', (r) => r.url().startsWith(service) && r.method() === 'POST' && calls.push(r.url()));
  await v.page.route(`${origin}/**`, (route) => {
    const name = new URL(route.request().url()).pathname.replace(/^\/modules\//, '');
    const file = modules[name];
    return file
      ? route.fulfill({
          contentType: 'text/javascript',
          body: readFileSync(join(folder, 'node_modules', file), 'utf8'),
        })
      : route.fulfill({ contentType: 'text/html', body: html(key) });
  });
  await v.page.goto(`${origin}/`);
  return calls;
}

const serves = (v, value) =>
  v.until(`the page has ${value}`, () => v.page.evaluate((value) => window.served?.().value === value, value));

const stories = {
  'a page of another origin evaluates, hears of changes, and goes on over a restart': async (come) => {
    const admin = await come({ url: service, refused: ['net::ERR_', 502, 503] });
    await admin.signUp();
    await admin.call('POST', '/api/v1/flags', { key: 'banner', type: 'boolean', clientSide: true });
    await admin.call('POST', '/api/v1/flags/banner/enable', undefined, undefined, 'production');
    const { key } = await admin.call('POST', '/api/v1/evaluation-keys', {
      name: 'Shop',
      kind: 'browser',
      environment: 'production',
      origins: ['http://localhost:*'],
    });
    const v = await come({ url: service, refused: ['net::ERR_', 502, 503] });
    const calls = await openShop(v, key);
    await serves(v, true);
    const before = calls.length;
    await admin.call('POST', '/api/v1/flags/banner/disable', undefined, undefined, 'production');
    await serves(v, false);
    if (calls.length !== before + 1) throw new Error(`${calls.length - before} calls for one change: it polls`);

    const order = (what) => fetch(`${control}/${what}?of=shop`, { method: 'POST' });
    await admin.call('POST', '/api/v1/flags/banner/enable', undefined, undefined, 'production');
    await serves(v, true);
    await order('stop');
    await v.page.reload();
    await serves(v, true); // as persisted
    await order('start');
    await admin.until('the service is back', () =>
      fetch(`${service}/health`).then(
        (r) => r.ok,
        () => false,
      ),
    );
    await v.page.reload();
    await admin.call('POST', '/api/v1/flags/banner/disable', undefined, undefined, 'production');
    await serves(v, false);
  },
};

export default control ? stories : {};
