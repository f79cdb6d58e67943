import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { password } from './visitor.mjs';

/** Goes to a page by the navigation. */
async function go(v, name) {
  await v.page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
  await v.heading(name).waitFor();
}

export default {
  'people and machines come and go, and the trail tells of it': async (come) => {
    const v = await come({ refused: [409, 422] });
    await v.signUp();

    await go(v, 'Members');
    const email = `${randomUUID()}@example.com`;
    await v.button('Add member').click();
    await v.field('Email').fill('nonsense');
    await v.button('Add').click();
    await v.page
      .getByRole('dialog')
      .getByText(/^Email .*\.$/)
      .waitFor();
    await v.inspect();
    await v.field('Email').fill(email);
    await v.button('Add').click();
    await v.page.getByText('Pending', { exact: true }).waitFor();
    await v.inspect();
    // Arrow keys choose no role before Enter is pressed.
    await v.button(`Role of ${email}: Developer`).press('Enter');
    for (let i = 0; i < 2; i++) await v.page.keyboard.press('ArrowDown');
    await v.page.keyboard.press('Enter');
    await v.button(`Role of ${email}: Viewer`).waitFor();
    await v.button(`Role of ${v.email}: Admin`).click();
    await v.page.getByRole('menuitemradio', { name: 'Viewer' }).click();
    await v.heading('Change your own role?').waitFor();
    await v.inspect();
    await v.button('Change the role').click();
    await v.page.getByText('The last admin of a tenant cannot be demoted.').waitFor();
    await v.button('Cancel').click();
    await v.button(`Role of ${v.email}: Admin`).waitFor();
    await v.button('Add member').click();
    const role = v.page.getByRole('dialog').getByLabel('Role', { exact: true });
    await role.selectOption('admin');
    await v.page.getByRole('dialog').getByLabel('Email').fill(email);
    await v.button('Cancel').click();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.button('Add member').click();
    await v.until('the role is the first again', async () => (await role.inputValue()) === 'developer');
    await v.button('Cancel').click();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.button(`Remove ${email}`).click();
    await v.button('Remove').click();
    await v.button(`Remove ${email}`).waitFor({ state: 'detached' });

    await go(v, 'Clients');
    await v.button('New client').click();
    await v.field('Name').fill('<img src=x onerror=alert(1)>');
    await v.inspect();
    await v.button('Create').click();
    await v.heading('The secret').waitFor();
    await v.inspect();
    const [id, secret] = await v.page.getByRole('dialog').locator('pre').allInnerTexts();
    const token = await fetch(`${v.url}/api/v1/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: secret }),
    });
    if (!token.ok) throw new Error(`the secret is refused: ${token.status}`);
    await v.button('I have saved it').click();
    await v.page.getByText(id).waitFor();
    if ((await v.page.content()).includes(secret)) throw new Error('the secret is still there');
    await v.inspect();

    await go(v, 'Environments');
    await v.button('Add environment').click();
    await v.field('Name').fill('staging');
    await v.button('Add').click();
    await v.link('staging').waitFor();
    await v.button('Delete staging').click();
    await v.field('Type staging to confirm').fill('staging');
    await v.button('Delete').click();
    await v.link('staging').waitFor({ state: 'detached' });

    await go(v, 'Projects');
    await v.button('New project').click();
    await v.field('Name').fill('Checkout');
    await v.button('Create').click();
    await v.link('Checkout').waitFor();
    await v.inspect();

    await go(v, 'Audit');
    await v.page.locator('summary', { hasText: '<img src=x onerror=alert(1)>' }).waitFor();
    await v.field('Change').selectOption('project.created');
    const entries = v.page.locator('details');
    await v.until('one entry is left', async () => (await entries.count()) === 1);
    await v.page.reload();
    await v.until('it is still one', async () => (await entries.count()) === 1);
    await entries.locator('summary').click();
    await entries.getByText('Checkout').nth(1).waitFor();
    await v.inspect();
    await v.shot('audit');
  },

  'a project is renamed, and deleted once it has no flags': async (come) => {
    const v = await come();
    await v.signUp();
    const { id } = await v.call('POST', '/api/v1/projects', { name: 'Checkout' });
    await v.call('POST', '/api/v1/flags', { key: 'pay-later', type: 'boolean', projectId: id });
    await v.page.reload();
    await go(v, 'Projects');
    await v.button('Edit Checkout').click();
    await v.field('Name').fill('Payments');
    await v.page.getByLabel(/^Description/).fill('All that is paid for');
    await v.button('Save').click();
    await v.link('Payments').waitFor();
    await v.page.getByText('All that is paid for').waitFor();
    await v.page.getByText('Delete its flags first').waitFor();
    if (!(await v.button('Delete Payments').isDisabled())) throw new Error('a project with flags can be deleted');
    await v.inspect();
    await v.call('DELETE', '/api/v1/flags/pay-later');
    await v.page.reload();
    await v.button('Delete Payments').click();
    await v.button('Delete').click();
    await v.page.getByText('No project yet').waitFor();
  },

  'a secret is rotated: the new one is shown once, and the one before is good for a while': async (come) => {
    const v = await come();
    await v.signUp();
    const made = await v.call('POST', '/api/v1/oauth/clients', { name: 'backend', scopes: ['flags:evaluate'] });
    await go(v, 'Clients');
    await v.button('Rotate the secret of backend').click();
    await v.page.getByText('stays valid for another 24 hours').waitFor();
    await v.inspect();
    await v.button('Rotate').click();
    await v.heading('The secret').waitFor();
    const [id, secret] = await v.page.getByRole('dialog').locator('pre').allInnerTexts();
    if (id !== made.clientId || secret === made.clientSecret) throw new Error('it is no new secret of the client');
    for (const good of [secret, made.clientSecret]) {
      const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: good });
      const { status } = await fetch(`${v.url}/api/v1/oauth/token`, { method: 'POST', body });
      if (status !== 200) throw new Error(`a good secret is refused: ${status}`);
    }
    await v.button('I have saved it').click();
    await v.page.getByText(id).waitFor();
    if ((await v.page.content()).includes(secret)) throw new Error('the secret is still there');
  },

  'who goes back before they have kept a secret is asked first': async (come) => {
    const v = await come();
    await v.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await v.signUp();
    await go(v, 'Clients');
    const asked = v.heading('Leave without saving?');
    const back = async () => {
      await v.page.goBack();
      await Promise.race([asked.waitFor(), v.heading('Flags').waitFor()]);
      if (!(await asked.count())) throw new Error('the page is left, and the secret with it');
      await v.button('Stay').click();
      await asked.waitFor({ state: 'detached' });
    };
    let release;
    await v.page.route(/\/oauth\/clients(\/[^/]+\/rotate)?$/, async (route) => {
      if (route.request().method() === 'POST') await new Promise((resolve) => (release = resolve));
      return route.continue();
    });
    const held = async () => {
      await v.until('it is sent', () => release);
      await back();
      release();
      release = undefined;
      await v.heading('The secret').waitFor();
      await back();
    };

    await v.button('New client').click();
    await v.field('Name').fill('backend');
    await v.button('Create').click();
    await held();
    await v.page.keyboard.press('Escape');
    await v.heading('Close without the secret?').waitFor();
    await v.inspect();
    await v.button('Stay').click();
    await v.heading('Close without the secret?').waitFor({ state: 'detached' });
    await v.button('I have saved it').click();
    await v.heading('The secret').waitFor({ state: 'detached' });

    // After a copy, closing needs no confirmation.
    await v.button('Rotate the secret of backend').click();
    await v.button('Rotate').click();
    await held();
    await v.button('Copy').nth(1).click();
    await v.button('Copied').waitFor();
    await v.page.keyboard.press('Escape');
    await v.heading('The secret').waitFor({ state: 'detached' });
    await v.page.goBack();
    await v.heading('Flags').waitFor();
  },

  'what reads the whole trail begins with a token that lasts': async (come) => {
    const v = await come({ acceptDownloads: true });
    await v.signUp();
    await go(v, 'Audit');
    const calls = [];
    v.page.on('request', (request) => {
      const [, name] = /(refresh|export|facts)(\?|$)/.exec(request.url()) ?? [];
      if (name) calls.push(name);
    });
    const soonOver = async () => {
      await v.page.evaluate(() => {
        const session = JSON.parse(sessionStorage.getItem('session'));
        sessionStorage.setItem('session', JSON.stringify({ ...session, endsAt: Date.now() + 5 * 60_000 }));
      });
      await v.page.reload();
      await v.heading('Audit').waitFor();
    };
    await soonOver();
    const download = v.page.waitForEvent('download');
    await v.button('Export').click();
    await v.page.getByRole('menuitem', { name: 'JSON, a line each' }).click();
    await download;
    await soonOver();
    await v.button('Verify').click();
    const dialog = v.page.getByRole('dialog');
    await dialog.getByLabel('Also hash every change').check();
    await dialog.getByRole('button', { name: 'Verify', exact: true }).click();
    await dialog.getByText('are hashed, and lead to what the checkpoint signed').waitFor();
    if (calls.join() !== 'refresh,export,refresh,facts') throw new Error(`the calls are ${calls}`);
  },

  'the trail is saved as it is filtered, for programs and for spreadsheets': async (come) => {
    const v = await come({ acceptDownloads: true });
    await v.signUp();
    for (const key of ['one', 'two']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    await v.call('POST', '/api/v1/flags/two/enable');
    await go(v, 'Audit');
    await v.field('Change').selectOption('flag.created');
    const entries = v.page.locator('details');
    await v.until('the flags are left', async () => (await entries.count()) === 2);
    const save = async (format) => {
      const download = v.page.waitForEvent('download');
      await v.button('Export').click();
      await v.page.getByRole('menuitem', { name: format }).click();
      const file = await download;
      const lines = readFileSync(await file.path(), 'utf8')
        .trimEnd()
        .split('\n');
      return { name: file.suggestedFilename(), lines };
    };
    const json = await save('JSON, a line each');
    const keys = json.lines.map((line) => JSON.parse(line).resource.id);
    if (json.name !== 'audit.ndjson' || keys.sort().join() !== 'one,two')
      throw new Error(`${json.name}: ${json.lines}`);
    const csv = await save('CSV, for spreadsheets');
    if (csv.name !== 'audit.csv' || csv.lines.length !== 3) throw new Error(`${csv.name}: ${csv.lines}`);
  },

  'who leaves a tenant comes to another of theirs': async (come) => {
    const v = await come({ refused: [403, 404] });
    await v.signUp();
    const home = v.place.tenant;
    const other = await come();
    await other.signUp();
    const { tenant } = other.place;
    await other.call('POST', `/api/v1/tenants/${tenant}/users`, { email: v.email, role: 'developer' });
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.field('Email').fill(v.email);
    await v.field('Password').fill(password);
    await v.button('Sign in').click();
    await v.heading('Flags').waitFor();
    await v.open(`/t/${tenant}/production/members`);
    await v.button('Leave').click();
    await v.page.getByRole('dialog').getByRole('button', { name: 'Leave', exact: true }).click();
    await v.heading('Flags').waitFor();
    await v.until('it is their own', () => v.place.tenant === home);
    await v.button('New flag').waitFor();
  },

  'an auditor verifies the trail, and what is no checkpoint of it': async (come) => {
    const v = await come();
    await v.signUp();
    await go(v, 'Audit');
    await v.button('Verify').click();
    const dialog = v.page.getByRole('dialog');
    const verify = dialog.getByRole('button', { name: 'Verify', exact: true });
    await verify.click();
    await dialog.getByText('is signed by the key').waitFor();
    const kept = await dialog.locator('pre').first().innerText();
    for (const key of ['one', 'two', 'three']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    await dialog.getByLabel('Earlier checkpoint').fill(kept);
    await dialog.getByLabel('Also hash every change').check();
    // The service signs what its read model has, which may lag for a moment.
    await v.until('the trail is longer, and whole', async () => {
      await verify.click();
      await dialog.getByText('are hashed, and lead to what the checkpoint signed').waitFor();
      return kept.split('\n')[1] !== (await dialog.locator('pre').first().innerText()).split('\n')[1];
    });
    await dialog.getByText('of the earlier checkpoint, unaltered').waitFor();
    await v.inspect();
    await v.shot('verified');
    await dialog.getByLabel('Earlier checkpoint').fill(kept.replace(/\n(\d+)\n/, (_, n) => `\n${n - 1}\n`));
    await verify.click();
    await dialog.getByText('The key has not signed the checkpoint.').waitFor();
  },

  'a client without a name is told by its id, and is not taken for people': async (come) => {
    const v = await come();
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'used', type: 'boolean' });
    const id = '0198c5a1-8e3f-7a21-b4c6-6d2f8a0c4e95';
    const seen = '2026-01-02T03:04:05Z';
    const clients = [
      { clientId: id, name: null, evaluations: 3, lastSeenAt: seen },
      { clientId: randomUUID(), name: 'backend', evaluations: 2, lastSeenAt: seen },
      { clientId: null, name: null, evaluations: 1, lastSeenAt: seen },
    ];
    await v.page.route('**/metrics?**', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), clients } });
    });
    await v.page.route('**/api/v1/cleanup?**', (route) =>
      route.fulfill({
        json: [{ flagKey: 'used', lifecycle: 'unused', since: seen, lastEvaluatedAt: seen, outcome: null, clients }],
      }),
    );
    for (const page of ['usage', 'flags/used?tab=use', 'cleanup']) {
      await v.open(`/t/${v.place.tenant}/production/${page}`);
      for (const name of [id, 'backend', 'People']) await v.page.getByText(name).last().waitFor();
    }
  },

  'usage, clean-up and one’s own account at 360 px': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark', refused: [401, 422] });
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'used', type: 'boolean' });
    const { tenant, environment } = v.place;
    for (let i = 0; i < 3; i++) {
      await v.call('POST', '/api/v1/flags/used/evaluate', { targetingKey: `user-${i}`, environment });
    }
    await v.counted('used', 3);
    await v.open(`/t/${tenant}/${environment}/usage`);
    await v.heading('Usage').waitFor();
    await v.link('used').waitFor();
    await v.inspect();
    const limits = v.page.getByRole('table', { name: 'Limits' });
    await limits.getByRole('row', { name: 'Flags 1 of 20,000' }).waitFor();
    await v.shot('usage-360');
    await v.open(`/t/${tenant}/${environment}/cleanup`);
    await v.page.getByText('Nothing to clean up').waitFor();
    await v.inspect();
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Profile' }).click();
    await v.heading('Profile').waitFor();
    await v.inspect();
    await v.button('Sign out everywhere').click();
    const dialog = v.page.getByRole('dialog');
    await dialog.getByLabel('Password').fill('not the password');
    await dialog.getByRole('button', { name: 'Sign out everywhere' }).click();
    await v.page.getByText('Password is wrong.').waitFor();
    await v.inspect();
  },
};
