// Takes the pictures of docs/screenshots of an empty service at SERVICE_URL, whose super user is me@example.com, and leaves them in the folder SHOTS:
// CHROMIUM=$(command -v chromium) SERVICE_URL=http://127.0.0.1:8080 SHOTS=../../docs/screenshots node stories/screenshots.mjs
import { chromium } from 'playwright-core';
import { password, Visitor } from './visitor.mjs';

async function post(url, body) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** A shop with flags that have a life behind them. */
async function fill(v) {
  const { tenant } = v.place;
  const change = v.call.bind(v);
  await change('PATCH', `/api/v1/tenants/${tenant}`, { name: 'Northwind' });
  await change('POST', `/api/v1/tenants/${tenant}/environments`, { environment: 'staging' });
  for (const [email, role] of [
    ['grace@example.com', 'developer'],
    ['linus@example.com', 'viewer'],
  ]) {
    await change('POST', `/api/v1/tenants/${tenant}/users`, { email, role });
  }
  const flags = [
    ['new-checkout', 'New checkout', 'boolean', ['checkout', 'web'], true],
    ['search-ranking', 'Ranking of the search', 'string', ['search'], true],
    ['free-shipping-from', 'Free shipping from', 'number', ['pricing'], true],
    ['holiday-banner', 'Holiday banner', 'string', ['marketing', 'web'], false],
    ['dark-mode', 'Dark mode', 'boolean', ['web', 'app'], true],
    ['express-delivery', 'Express delivery', 'boolean', ['checkout'], false],
    ['recommendations', 'Recommendations', 'json', ['search', 'app'], true],
    ['payment-fallback', 'Fallback of payments', 'boolean', ['checkout'], false],
  ];
  const values = { boolean: false, string: 'classic', number: 50, json: { size: 8, model: 'v2' } };
  for (const [key, name, type, tags, on] of flags) {
    await change('POST', '/api/v1/flags', { key, name, type, tags, defaultValue: values[type] });
    if (on) await change('POST', `/api/v1/flags/${key}/enable`, undefined, 'ready since the last release');
  }
  const flag = '/api/v1/flags/new-checkout';
  const { id: on } = await change('POST', `${flag}/variations`, { name: 'on', value: true, weight: 25 });
  const { id: off } = await change('POST', `${flag}/variations`, { name: 'off', value: false, weight: 75 });
  await change(
    'PUT',
    `${flag}/rules`,
    {
      rules: [
        {
          name: 'Pro and team',
          conditions: [{ attribute: 'plan', op: 'in', values: ['pro', 'team'] }],
          serve: { variationId: on },
        },
        {
          name: 'Half of Germany',
          conditions: [{ attribute: 'country', op: 'in', values: ['DE'] }],
          serve: {
            rollout: [
              { variationId: on, weight: 50 },
              { variationId: off, weight: 50 },
            ],
            bucketBy: 'company.id',
          },
        },
      ],
    },
    'paying customers first',
  );
  await change('POST', `${flag}/disable`, undefined, 'invoices were wrong');
  await change('POST', `${flag}/enable`, undefined, 'invoices are right again');
  for (let user = 0; user < 60; user++) {
    const context = {
      targetingKey: `user-${user}`,
      attributes: { plan: user % 3 ? 'free' : 'pro', country: 'DE', company: { id: user % 7 } },
    };
    await change('POST', `${flag}/evaluate`, context);
    if (user % 2) await change('POST', '/api/v1/flags/dark-mode/evaluate', context);
    if (user % 5 === 0) await change('POST', '/api/v1/flags/search-ranking/evaluate', context);
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const email = 'me@example.com';
const url = process.env.SERVICE_URL;
const { user } = await post(`${url}/auth/signup`, { email, password, displayName: 'Ada Moreau' });

async function visit(colorScheme) {
  const v = await Visitor.come(browser, { colorScheme });
  await v.open('/sign-in');
  await v.field('Email').fill(email);
  await v.field('Password').fill(password);
  await v.button('Sign in').click();
  await v.heading('Flags').waitFor();
  return v;
}

const light = await visit('light');
await fill(light);
await light.call('PUT', `/api/v1/users/${user.id}/product-tours/dashboard@1`, { completed: true });
const dark = await visit('dark');
const at = (v, path) => v.open(`/t/${v.place.tenant}/${v.place.environment}/${path}`);

async function shoot(v, name, ready) {
  await ready.waitFor();
  await v.page.waitForTimeout(700); // waits for everything beside it
  await v.shot(name);
  console.log(name);
}

await light.until('the use of flags is seen', async () => {
  const { evaluations } = await light.call('GET', '/api/v1/flags/new-checkout/metrics');
  return evaluations >= 60;
});
for (const [v, scheme] of [
  [light, 'light'],
  [dark, 'dark'],
]) {
  await at(v, 'flags');
  await shoot(v, `flags-${scheme}`, v.link('new-checkout'));
  await at(v, 'flags/new-checkout?tab=rules');
  await shoot(v, `rules-${scheme}`, v.page.getByText('Half of Germany').first());
}
await at(light, 'flags/new-checkout?tab=history');
await shoot(light, 'time-light', light.page.getByText('invoices were wrong').first());
await at(dark, 'playground');
await shoot(dark, 'playground-dark', dark.page.getByText('new-checkout').first());
await at(light, 'audit');
await shoot(light, 'audit-light', light.page.getByText('paying customers first').first());
await light.open('/platform/service');
await shoot(light, 'service-light', light.page.getByRole('row', { name: 'oauth_clients' }));
await browser.close();
