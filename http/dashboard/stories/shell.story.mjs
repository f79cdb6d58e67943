import { randomUUID } from 'node:crypto';
import { password } from './visitor.mjs';

/** Goes where the command palette leads, by keyboard alone. */
async function command(v, typed, name) {
  await v.page.keyboard.press('Control+k');
  await v.page.getByRole('combobox', { name: 'Go to' }).fill(typed);
  await v.page.getByRole('option', { name, exact: true, selected: true }).waitFor();
  await v.page.keyboard.press('Enter');
  await v.page.getByRole('dialog', { name: 'Go to' }).waitFor({ state: 'detached' });
}

const dark = (v) => v.page.evaluate(() => document.documentElement.dataset.theme === 'dark');

export default {
  'each thing is found by its name, which nothing else beside it has': async (come) => {
    const v = await come();
    const once = async (...found) => {
      for (const [what, it] of found) {
        await it.first().waitFor();
        const n = await it.count();
        if (n !== 1)
          throw new Error(
            `${what} is found ${n} times: ${await it.evaluateAll((all) => all.map((e) => e.outerHTML.slice(0, 200)).join('\n'))}`,
          );
      }
    };
    const role = (kind, name) => [`${kind} ${name}`, v.page.getByRole(kind, { name })];
    const label = (name) => [`field ${name}`, v.page.getByLabel(name)];
    await v.open('/sign-in');
    await once(label('Email'), label('Password'), role('button', 'Sign in'));
    await v.open('/sign-up');
    await once(label('Email'), label('Password'), role('button', 'Sign up'));
    await v.signUp();
    const frame = () => once(role('navigation'), role('main'), role('combobox', 'Environment'));
    await v.button('Create first-flag').waitFor();
    await v.call('POST', '/api/v1/flags', { key: 'checkout', type: 'boolean' });
    await v.page.reload();
    await once(role('switch', 'checkout'), role('link', 'checkout'), role('heading', 'Flags'), label('Search'));
    await once(role('button', 'New flag'));
    await frame();
    await v.button('New flag').click();
    const field = (name) => [`field ${name}`, v.page.getByRole('dialog').getByLabel(name)];
    await once(field('Key'), field('Name'), field('Type'), role('button', 'Create'));
    await v.page.keyboard.press('Escape');
    for (const name of ['Audit', 'Members', 'Clients', 'Usage']) {
      await v.page.getByRole('navigation').getByRole('link', { name }).click();
      await once(role('heading', name));
      await frame();
    }
    await v.open(`/t/${v.place.tenant}/production/flags/checkout?tab=overview`);
    await once(role('heading', 'checkout'), label('Name'));
    await frame();
    await v.field('Name').fill('Checkout');
    await once(role('button', 'Save'));
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    await v.page.getByRole('tab', { name: 'History' }).click();
    await v.link('Show version 1').click();
    await once(role('button', 'Revert'));
  },

  'a frame or a page that cannot be loaded is told, and loaded again': async (come) => {
    const v = await come({ refused: ['net::ERR_'] });
    await v.signUp();
    const told = v.page.getByText('A part of the dashboard could not be loaded.');
    for (const part of ['Shell', 'FlagsPage']) {
      const files = `**/app/assets/${part}-*.js`;
      await v.page.route(files, (route) => route.abort());
      await v.page.reload();
      await told.waitFor();
      await v.inspect();
      await v.page.unroute(files);
      await v.button('Try again').click();
      await v.heading('Flags').waitFor();
    }
    await v.page.route('**/app/assets/index-*.js', (route) => route.abort());
    await v.page.reload();
    await v.page.getByText('The dashboard could not be loaded.').waitFor();
  },

  'what is typed before the command palette is loaded is kept': async (come) => {
    const v = await come();
    let goOn;
    const held = new Promise((resolve) => (goOn = resolve));
    await v.page.route('**/app/assets/Commands-*.js', async (route) => {
      await held;
      await route.continue();
    });
    await v.signUp();
    await v.page.keyboard.press('Control+k');
    await v.until('one can type', () =>
      v.field('Go to').evaluateAll((fields) => fields.some((field) => field === document.activeElement)),
    );
    await v.page.keyboard.type('Aud');
    await v.inspect();
    goOn();
    const field = v.page.getByRole('combobox', { name: 'Go to' });
    await field.waitFor();
    await v.page.keyboard.type('it');
    if ((await field.inputValue()) !== 'Audit') throw new Error(`what is typed is ${await field.inputValue()}`);
    await v.page.keyboard.press('Enter');
    await v.heading('Audit').waitFor();
  },

  'the command palette leads to every page, environment, tenant and action': async (come) => {
    const v = await come();
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', `/api/v1/tenants/${tenant}/environments`, { environment: 'staging' });
    await v.call('POST', '/api/v1/flags', { key: 'checkout', type: 'boolean' });
    const other = await v.call('POST', '/api/v1/tenants', { name: 'Another one' });
    await v.page.reload();
    await v.switch('checkout').waitFor();

    await v.page.keyboard.press('Control+k');
    await v.page.getByRole('option', { name: 'checkout' }).waitFor();
    await v.inspect();
    await v.shot('palette');
    await v.page.keyboard.press('Escape');

    await command(v, 'prof', 'Profile');
    await v.heading('Profile').waitFor();
    await command(v, 'appearance: d', 'Appearance: Dark');
    if (!(await dark(v))) throw new Error('the page is not dark');
    await v.page.reload();
    await v.heading('Profile').waitFor();
    if (!(await dark(v))) throw new Error('the page is dark no longer');
    await v.inspect();
    await command(v, 'checkout', 'checkout');
    await v.heading('checkout').waitFor();
    await command(v, 'stag', 'staging');
    await v.page.waitForURL(`**/t/${tenant}/staging/flags/checkout`);
    await command(v, 'new flag', 'New flag');
    await v.page.getByRole('dialog', { name: 'New flag' }).waitFor();
    await v.page.keyboard.press('Escape');
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await command(v, 'another', 'Another one');
    await v.page.waitForURL(`**/t/${other.id}/production/flags`);
    await command(v, 'sign', 'Sign out');
    await v.heading('Sign in').waitFor();
  },

  'somebody of two tenants sees in each what is its own': async (come) => {
    const v = await come();
    await v.signUp();
    const first = v.place.tenant;
    await v.call('POST', '/api/v1/flags', { key: 'of-the-first', type: 'boolean' });
    const second = await v.call('POST', '/api/v1/tenants', { name: 'Second' });
    await v.page.reload();
    await v.switch('of-the-first').waitFor();
    const tenants = v.page.getByRole('combobox', { name: 'Tenant', exact: true });
    await tenants.click();
    await v.page.getByRole('option', { name: 'Second' }).click();
    await v.page.waitForURL(`**/t/${second.id}/production/flags`);
    await v.heading('Create your first flag').waitFor();
    await v.page.goBack();
    await v.switch('of-the-first').waitFor();
    if (v.place.tenant !== first) throw new Error(`the tenant is ${v.place.tenant}`);
    await v.until('the switcher follows', async () => (await tenants.inputValue()) !== 'Second');
  },

  'a tenant is opened in the environment that was used last there, or in one that it has': async (come) => {
    const v = await come();
    await v.signUp();
    const first = v.place.tenant;
    const second = await v.call('POST', '/api/v1/tenants', { name: 'Second' });
    const at = async (tenant, environment) => {
      await v.page.waitForURL(`**/t/${tenant}/${environment}/flags`);
      await v.heading('Create your first flag').waitFor();
    };
    const open = async (tenant, environment) => {
      await v.open(`/t/${tenant}/production/flags`);
      await v.call('POST', `/api/v1/tenants/${tenant}/environments`, { environment });
      await v.open(`/t/${tenant}/${environment}/flags`);
      await at(tenant, environment);
    };
    await open(second.id, 'live');
    await open(first, 'staging');
    const switcher = v.page.getByRole('combobox', { name: 'Tenant', exact: true });
    const name = await switcher.inputValue();
    await command(v, 'second', 'Second');
    await at(second.id, 'live');
    await switcher.click();
    await v.page.getByRole('option', { name }).click();
    await at(first, 'staging');
    await open(second.id, 'brief');
    await v.call('DELETE', `/api/v1/tenants/${second.id}/environments/brief`);
    await v.open(`/t/${first}/staging/flags`);
    await at(first, 'staging');
    await command(v, 'second', 'Second');
    await at(second.id, 'production');
    await v.open('/');
    await at(second.id, 'production');
  },

  'notifications are counted, read and marked as read': async (come) => {
    const v = await come();
    await v.signUp();
    const { tenant } = v.place;
    const { id } = await v.page.evaluate(() => JSON.parse(sessionStorage.getItem('session')).user);
    for (const title of ['First', '<img src=x onerror=alert(1)>']) {
      await v.call('POST', '/api/v1/notifications/send', {
        userId: id,
        tenantId: tenant,
        type: 'info',
        title,
        body: 'Something has happened.',
      });
    }
    await v.page.reload();
    await v.button('Notifications, 2 unread').click();
    const inbox = v.page.getByRole('region', { name: 'Notifications' });
    await inbox.getByText('<img src=x onerror=alert(1)>').waitFor();
    if (!/<img.*First/s.test(await inbox.innerText())) throw new Error('the newest is not the first');
    await v.inspect();
    await v.shot('notifications');
    await v.button('Mark all as read').click();
    await v.button('Notifications').waitFor();
    await v.button('Mark all as read').waitFor({ state: 'detached' });
    await v.page.keyboard.press('Escape');
    await inbox.waitFor({ state: 'detached' });
  },

  'who signs out everywhere is signed out in their other browser': async (come) => {
    const here = await come({ refused: [401, 422] });
    await here.signUp();
    const there = await come({ refused: [401] });
    await there.open('/sign-in');
    await there.fillSignIn(here.email);
    await there.heading('Flags').waitFor();

    await command(here, 'prof', 'Profile');
    await here.button('Sign out everywhere').click();
    const dialog = here.page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Sign out everywhere' }).waitFor();
    await here.inspect();
    await dialog.getByLabel(/password/i).fill(randomUUID());
    await dialog.getByRole('button', { name: 'Sign out everywhere' }).click();
    await dialog
      .getByText(/password/i)
      .filter({ hasText: /wrong|not/ })
      .first()
      .waitFor();
    await dialog.getByLabel(/password/i).fill(password);
    await dialog.getByRole('button', { name: 'Sign out everywhere' }).click();
    await here.heading('Sign in').waitFor();
    await there.page.reload();
    await there.heading('Sign in').waitFor();
    if (await there.page.evaluate(() => sessionStorage.getItem('session')))
      throw new Error('the tokens are still there');
  },

  'an environment that is gone is told, with a way to one that is there': async (come) => {
    const v = await come({ refused: [403, 404] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'here', type: 'boolean' });
    await v.open(`/t/${tenant}/gone/flags/here`);
    await v.heading('There is no environment gone').waitFor();
    if (await v.page.getByText('There is no such flag').count()) throw new Error('the flag is said not to be there');
    await v.inspect();
    await v.page.goto(`${v.url}/app/`);
    await v.page.waitForURL(`**/t/${tenant}/production/flags`);
    await v.open(`/t/${tenant}/gone/flags/here`);
    await v.link('Go to production').click();
    await v.switch('here').waitFor();
    if (v.place.environment !== 'production') throw new Error(`it leads to ${v.page.url()}`);

    // One that others delete while it is looked at.
    await v.call('POST', `/api/v1/tenants/${tenant}/environments`, { environment: 'brief' });
    await v.open(`/t/${tenant}/brief/flags`);
    await v.switch('here').waitFor();
    await v.call('DELETE', `/api/v1/tenants/${tenant}/environments/brief`);
    await v.link('here').click();
    await v.heading('There is no environment brief').waitFor();

    await v.page.route('**/api/v1/flags/*/history*', (route) => route.fulfill({ status: 403, json: { status: 403 } }));
    await v.open(`/t/${tenant}/production/flags/nothing`);
    await v.page.getByText('You may not do this.').waitFor();
    if (await v.page.getByText('There is no such flag').count()) throw new Error('what is not known is told');
  },
};
