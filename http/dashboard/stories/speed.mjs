// Measures what a person waits for, in a browser, against the service at SERVICE_URL, as somebody with EMAIL and PASSWORD whose TENANT has the flags k00000 to k19999. It prints the
// medians of ROUNDS rounds as a JSON object: milliseconds, and compressed bytes.
import { chromium } from 'playwright-core';

const { SERVICE_URL: url, EMAIL: email, PASSWORD: password, TENANT: tenant, ROUNDS: rounds } = process.env;
const list = `${url}/app/t/${tenant}/development/flags`; // in production a switch asks first
const signedIn = await fetch(`${url}/auth/signin`, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ email, password }),
});
if (!signedIn.ok) throw new Error(`${email} is refused: ${signedIn.status}`);
const answer = await signedIn.json();
const session = JSON.stringify({ ...answer, endsAt: Date.now() + answer.expiresIn * 1000 });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const measured = {};

function add(name, value) {
  (measured[name] ??= []).push(value);
}

/** A browser that has seen nothing yet. */
async function visit() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript((session) => sessionStorage.setItem('session', session), session);
  return context.newPage();
}

/** Does something in the page and waits until it is drawn: the time when it was, in milliseconds since 1970, or how long that took from the act. */
function seen(page, { act, key, checked }) {
  return page.evaluate(
    async ({ act, key, checked }) => {
      const began = performance.now();
      if (act?.click) document.querySelector(`[role=switch][aria-label^="Switch ${act.click} "]`).click();
      if (act?.search !== undefined) {
        const field = document.querySelector('input[type=search]');
        field.value = act.search;
        field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      }
      const shown = () => {
        const flag = document.querySelector(`[role=switch][aria-label^="Switch ${key} "]`);
        return flag && (checked ?? flag.ariaChecked) === flag.ariaChecked;
      };
      while (!shown()) {
        if (performance.now() > began + 20_000) throw new Error(`${key} is not seen`);
        await new Promise(requestAnimationFrame);
      }
      await new Promise(requestAnimationFrame);
      return act ? performance.now() - began : performance.timeOrigin + performance.now();
    },
    { act, key, checked },
  );
}

for (let i = 0; i < rounds; i++) {
  const page = await visit();
  await page.goto(list, { waitUntil: 'commit' });
  const shown = await seen(page, { key: 'k00000' });
  add('first-page-ms', shown - (await page.evaluate(() => performance.timeOrigin)));
  // The files of the dashboard, without what the API answers.
  const bytes = await page.evaluate(() =>
    ['navigation', 'resource']
      .flatMap((kind) => performance.getEntriesByType(kind))
      .filter((entry) => new URL(entry.name).pathname.startsWith('/app/'))
      .reduce((sum, entry) => sum + entry.encodedBodySize, 0),
  );
  add('first-page-B', bytes);

  const other = await visit();
  await other.goto(list);
  await seen(other, { key: 'k00000' });
  add(
    'filter-ms',
    await seen(page, { act: { search: `k1${String(i).padStart(4, '0')}` }, key: `k1${String(i).padStart(4, '0')}` }),
  );
  add('filter-off-ms', await seen(page, { act: { search: '' }, key: 'k00000' }));
  for (const checked of ['true', 'false']) {
    const began = Date.now();
    const theirs = seen(other, { key: 'k00000', checked });
    add('toggle-ms', await seen(page, { act: { click: 'k00000' }, key: 'k00000', checked }));
    add('toggle-of-another-ms', (await theirs) - began);
  }
  for (const done of [page, other]) await done.context().close();
}
await browser.close();
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
console.log(JSON.stringify(Object.fromEntries(Object.entries(measured).map(([name, all]) => [name, median(all)]))));
