const { RESTARTED_URL: restarted, CONTROL_URL: control } = process.env;

const problem = (status, headers) => (route) =>
  route.fulfill({ status, headers, contentType: 'application/problem+json', body: JSON.stringify({ status }) });

/** Makes a flag and opens its page. */
async function openFlag(v, key) {
  await v.signUp();
  await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
  await v.open(`/t/${v.place.tenant}/production/flags/${key}?tab=overview`);
  await v.heading(key).waitFor();
  await v.field('Name').waitFor();
}

const stories = {
  'what is too much at once is told, and read again when the service says so': async (come) => {
    const v = await come({ refused: [429] });
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'busy', type: 'boolean' });
    let asked = 0;
    await v.page.route('**/api/v1/flags?**', (route) =>
      asked++ ? route.fallback() : problem(429, { 'Retry-After': '1' })(route),
    );
    await v.open(`/t/${v.place.tenant}/development/flags`);
    await v.switch('busy').waitFor();
    await v.page.route('**/api/v1/flags/busy/enable', problem(429, { 'Retry-After': '7' }));
    await v.switch('busy').click();
    await v.page.getByText('busy: There were too many requests. Try again in 7 seconds.').waitFor();
    await v.switch('busy', { checked: false }).waitFor();
    await v.inspect();
  },

  'what can no longer be read stays, with how old it is and why': async (come) => {
    const v = await come({ refused: [403, 500] });
    await openFlag(v, 'kept');
    const one = '**/api/v1/flags/kept';
    await v.page.route(one, problem(500));
    await v.call('POST', '/api/v1/flags/kept/enable', undefined, '', 'development');
    await v.page.getByText('and may be outdated. The service has failed.').waitFor();
    await v.inspect();
    await v.page.unroute(one);
    await v.button('Try again').click();
    await v.button('Try again').waitFor({ state: 'detached' });
    await v.field('Name').waitFor();

    // A person who may no longer listen sees the reason in the page's own reads.
    await v.page.route('**/api/v1/flags/stream', problem(403));
    await v.page.route('**/api/v1/flags?**', problem(403));
    await v.link('Flags').first().click();
    await v.page.getByText('You may not do this. Ask an admin of the tenant.').waitFor();
    await v.page.keyboard.press('Control+K');
    await v.page.keyboard.type('nothing of this name');
    await v.page.getByRole('dialog').getByText('You may not do this.').waitFor();
    if (await v.page.getByText('Nothing found').count()) throw new Error('what is not read is said not to be there');
  },

  'offline, what was read and typed stays, and is saved later': async (come) => {
    const v = await come({ refused: ['net::ERR_'] });
    await openFlag(v, 'away');
    await v.field('Name').fill('Typed while away');
    await v.context.setOffline(true);
    await v.page.getByText('You are offline. The data is from').waitFor();
    await v.button('Save').click();
    await v.page.getByText('The service cannot be reached. Check your connection, then try again.').waitFor();
    await v.inspect();
    await v.shot('offline');
    await v.context.setOffline(false);
    await v.page.getByText('You are offline.').waitFor({ state: 'detached' });
    await v.button('Save').click();
    await v.until('it is saved', async () => (await v.call('GET', '/api/v1/flags/away')).name === 'Typed while away');
  },

  'the keyboard skips to the page, goes on in the page that it comes to, and moves rules': async (come) => {
    const v = await come();
    await openFlag(v, 'keys');
    const { keyboard } = v.page;
    const focused = (wanted) => wanted.evaluate((node) => node === document.activeElement);
    const main = v.page.locator('#page');
    await v.link('Skip to the page').focus();
    await keyboard.press('Enter');
    await v.until('the page has the focus', () => focused(main));
    if (v.page.url().includes('#')) throw new Error(`it went to ${v.page.url()}`);

    await v.page.getByRole('navigation').getByRole('link', { name: 'Projects', exact: true }).press('Enter');
    await v.heading('Projects').waitFor();
    await v.until('the next page has it', () => focused(main));
    await v.page.getByRole('button', { name: /^Commands/ }).press('Enter');
    await v.page.getByRole('combobox', { name: 'Go to' }).fill('keys');
    await v.page.getByRole('option', { name: 'keys', selected: true }).waitFor();
    await keyboard.press('Enter');
    await v.heading('keys').waitFor();
    await v.until('also by a command', () => focused(main));
    await v.field('Search').press('k');
    await v.heading('Flags').waitFor();
    if (!(await focused(v.field('Search')))) throw new Error('who searches is taken out of the field');
    await v.field('Search').fill('');

    await v.button('Appearance').press('Enter');
    const theme = (name, checked) => v.page.getByRole('menuitemradio', { name, checked });
    await theme('As the system', true).waitFor();
    await theme('Dark', false).press('Enter');
    await v.button('Appearance').press('Enter');
    await theme('Dark', true).waitFor();
    await keyboard.press('Escape');

    const rules = ['First', 'Second'].map((name) => ({ name, conditions: [], serve: { value: true } }));
    await v.call('PUT', '/api/v1/flags/keys/rules', { rules });
    await v.open(`/t/${v.place.tenant}/production/flags/keys`);
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Move Second up').press('Enter');
    await v.until('the way back has the focus', () => focused(v.button('Move Second down')));
    await keyboard.press('Enter');
    await v.until('so it has at the other end', () => focused(v.button('Move Second up')));
    await v.page.getByText('Order of the rules').waitFor({ state: 'detached' });
  },

  'what could not be read, or not further, is told': async (come) => {
    const v = await come({ refused: [403] });
    await v.page.route('**/api/v1/notifications**', problem(403));
    await openFlag(v, 'long');
    await v.button('Notifications').click();
    const inbox = v.page.getByLabel('Notifications', { exact: true }).filter({ has: v.heading('Notifications') });
    await inbox.getByText('You may not do this.').waitFor();
    if (await inbox.getByText('No notifications yet.').count())
      throw new Error('what was not read is said to be empty');
    await v.page.unroute('**/api/v1/notifications**');
    await inbox.getByRole('button', { name: 'Try again' }).click();
    await inbox.getByText('No notifications yet.').waitFor();
    await v.page.keyboard.press('Escape');

    // The flag pretends to have a long history, of which the service returns only the newest part.
    await v.page.route(/\/flags\/long\/(history|versions)\?/, async (route) => {
      const asked = new URL(route.request().url()).searchParams;
      if (Number(asked.get('offset'))) return problem(403)(route);
      const response = await route.fetch();
      const [line] = await response.json();
      const lines = Array.from({ length: Number(asked.get('limit')) }, (_, i) => ({
        ...line,
        id: i,
        version: 2000 - i,
      }));
      return route.fulfill({ response, json: lines });
    });
    await v.page.getByRole('tab', { name: 'History' }).click();
    for (const older of ['Show older versions', 'Show older changes']) {
      const refused = v.page.getByText('You may not do this.');
      const before = await refused.count();
      await v.button(older).click();
      await v.until(`it is told of ${older}`, async () => (await refused.count()) === before + 1);
    }
    await v.inspect();
  },

  'two quick clicks on a switch arrive one after the other': async (come) => {
    const v = await come();
    await openFlag(v, 'long');
    await v.open(`/t/${v.place.tenant}/development/flags`);
    await v.switch('long').waitFor();
    const calls = [];
    let release;
    const released = new Promise((resolve) => (release = resolve));
    await v.page.route('**/api/v1/flags/long/*able', async (route) => {
      calls.push(route.request().url().split('/').at(-1));
      if (calls.at(-1) === 'enable') await released;
      return route.fallback();
    });
    await v.switch('long').click();
    await v.until('it is switched on', () => calls.length === 1);
    await v.switch('long').click();
    await v.switch('long', { checked: false }).waitFor();
    if (calls.length !== 1) throw new Error(`side by side: ${calls}`);
    release();
    await v.until('then off', async () => calls.join() === 'enable,disable');
    await v.until('off is what stands', async () => (await v.call('GET', '/api/v1/flags/long')).version === 3);
    await v.switch('long', { checked: false }).waitFor();
  },

  'a switch that waits for its turn is one of the environment where it was clicked': async (come) => {
    const v = await come();
    await openFlag(v, 'long');
    const calls = [];
    let release;
    await v.page.route('**/api/v1/flags/long/*able', async (route) => {
      const request = route.request();
      calls.push(`${request.url().split('/').at(-1)} in ${request.headers()['x-environment']}`);
      if (calls.length === 1) await new Promise((resolve) => (release = resolve));
      return route.fallback();
    });
    const standsIn = async (environment) => {
      const flags = await v.call('GET', '/api/v1/flags', undefined, undefined, environment);
      return flags[0].enabled;
    };
    for (const page of ['/flags', '/flags/long']) {
      calls.length = 0;
      await v.open(`/t/${v.place.tenant}/development${page}`);
      await v.switch('long', { checked: false }).click();
      await v.until(`it is switched on, ${page}`, () => calls.length === 1);
      await v.switch('long', { checked: true }).click();
      await v.switch('long', { checked: false }).waitFor();
      await v.page.getByRole('combobox', { name: 'Environment', exact: true }).click();
      await v.page.getByRole('option', { name: 'production' }).click();
      await v.until('the URL names it', () => v.place.environment === 'production');
      release();
      await v.until(`both are through, ${page}`, () => calls.length === 2);
      if (calls.join() !== 'enable in development,disable in development') throw new Error(`${page}: ${calls}`);
      await v.until(`it is off, ${page}`, async () => !(await standsIn('development')));
      await v.switch('long', { checked: false }).waitFor();
    }
  },
};

const ofRestarts = {
  'the server is killed and comes back, and nothing is lost': async (come) => {
    const v = await come({ url: restarted, refused: ['net::ERR_', 502] });
    const order = (what) => fetch(`${control}/${what}?of=flags`, { method: 'POST' });
    await openFlag(v, 'steady');
    await v.field('Name').fill('Typed before');
    await order('stop');
    await v.page.getByText('The service is unavailable. The data is from').waitFor();
    await v.button('Save').click();
    await v.page.getByText('The service cannot be reached. Check your connection, then try again.').waitFor();
    await v.inspect();
    await v.shot('restart');
    await order('start');
    await v.page.getByText('The service is unavailable.').waitFor({ state: 'detached' });
    await v.button('Save').click();
    await v.until('it is saved', async () => (await v.call('GET', '/api/v1/flags/steady')).name === 'Typed before');
    // Changes by other people arrive again.
    await v.call('PATCH', '/api/v1/flags/steady', { description: 'Changed after' });
    await v.until('it is heard of', async () => (await v.field('Description').inputValue()) === 'Changed after');
  },
};

export default control ? { ...stories, ...ofRestarts } : stories;
