import { randomUUID } from 'node:crypto';
import { password } from './visitor.mjs';

// The super user of the service's settings.
const superUser = 'root@example.com';

async function enter(v) {
  const account = { email: superUser, password };
  await fetch(`${v.url}/auth/signup`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(account),
  }); // another story may have been first
  await v.open('/sign-in');
  await v.field('Email').fill(superUser);
  await v.field('Password').fill(password);
  await v.button('Sign in').click();
  await v.heading('Flags').waitFor();
}

async function go(v, name) {
  await v.page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
  await v.heading(name).waitFor();
}

export default {
  'a super user sees how the service stands, and shuts somebody out': async (come) => {
    const other = await come({ refused: [401, 403] });
    await other.signUp();
    if (await other.link('Platform').count()) throw new Error('somebody without a role is led to the platform');
    const v = await come({ refused: [403] });
    await enter(v);
    await v.link('Platform').click();
    await v.heading('Service').waitFor();
    await v.page.getByRole('row', { name: 'oauth_clients' }).waitFor();
    await v.inspect();
    await v.shot('service');

    await go(v, 'People');
    await v.field('Search').fill(other.email);
    await v.button(`Deactivate ${other.email}`).waitFor();
    await v.inspect();
    await v.shot('people');
    await v.button(`Deactivate ${other.email}`).click();
    await v.button('Deactivate').click();
    await v.page.getByText('Deactivated').waitFor();
    await other.page.reload();
    await other.page.getByText(/deactivated/i).waitFor();
    await v.button(`Activate ${other.email}`).click();
    await v.page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click();
    await v.button(`Deactivate ${other.email}`).waitFor();
    await v.link(`Audit of ${other.email}`).click();
    await v.heading('Audit').waitFor();
    await v.inspect();

    await go(v, 'Tenants');
    // The service pretends to have more, which cannot be read.
    await v.page.route('**/api/v1/admin/tenants?**', async (route) => {
      if (Number(new URL(route.request().url()).searchParams.get('offset'))) {
        return route.fulfill({ status: 403, contentType: 'application/problem+json', body: '{"status":403}' });
      }
      const response = await route.fetch();
      return route.fulfill({ response, headers: { ...response.headers(), 'x-total-count': '1000' } });
    });
    await v.page.reload();
    await v.button('Show more').click();
    await v.page.getByText('You may not do this.').waitFor();
    await v.page.unroute('**/api/v1/admin/tenants?**');
    await v.field('Search').fill(other.email);
    await v.page.getByRole('cell', { name: other.email }).waitFor();
    await v.inspect();
    await v.shot('tenants');
  },

  'an operator sees what is rebuilt, what is left out and which jobs fail': async (come) => {
    const v = await come();
    await enter(v);
    // The service pretends to have several problems at once.
    await v.page.route('**/api/v1/admin/status', async (route) => {
      const response = await route.fetch();
      const now = await response.json();
      const [first, second] = now.readModels;
      Object.assign(first, { lag: 10_000, behind: 90, rebuilt: 0.425 });
      Object.assign(second, { parked: 2 });
      now.jobs = [{ kind: 'mail', state: 'retryable', count: 7, failing: 3 }];
      Object.assign(now, { jobsLag: 5, jobsBehind: 61, detail: ['a job fails: mail'] });
      now.eventStore.reachable = false;
      now.snapshot.age = 75;
      return route.fulfill({ response, json: now });
    });
    await v.open('/platform/service');
    await v.page.getByText('A job fails: mail.').waitFor();
    const models = v.page.getByRole('table', { name: 'Read models' });
    await models.getByText('at least 10,000 facts, 90 s').waitFor();
    await models.getByText('Rebuilt to 42 %').waitFor();
    await models.getByText('2 streams left out').waitFor();
    await v.page.getByText('No jobs have been created yet from 5 facts: 61 s behind.').waitFor();
    const job = v.page.getByRole('table', { name: 'Jobs' }).getByRole('row', { name: 'mail' });
    await job.getByText('Waiting for a retry').waitFor();
    await job.getByText('3', { exact: true }).waitFor();
    await v.page.getByText('Unreachable').waitFor();
    await v.page.getByText('75 s old').waitFor();
    await v.inspect();
    await v.shot('service-troubled');
    await v.page.setViewportSize({ width: 360, height: 740 });
    await v.inspect();
    await v.shot('service-troubled-360');
  },

  'the command palette leads about the platform, to flags of the last place, and back to the tenants': async (come) => {
    const v = await come();
    await enter(v);
    const { tenant } = v.place;
    const key = `afar-${randomUUID()}`;
    await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    const name = await v.page.getByRole('combobox', { name: 'Tenant', exact: true }).inputValue();
    await v.link('Platform').click();
    await v.heading('Service').waitFor();
    const field = v.page.getByRole('combobox', { name: 'Go to' });
    const option = (name) => v.page.getByRole('option', { name, exact: true });
    await v.page.keyboard.press('Control+k');
    await v.page.getByRole('group', { name: `Flags of ${name} in production` }).waitFor();
    if (await option('New flag').count()) throw new Error('a flag is made at no place');
    await v.inspect();
    await v.shot('platform-palette');
    await field.fill('people');
    await v.page.keyboard.press('Enter');
    await v.heading('People').waitFor();

    // In a field a slash is a slash.
    await v.field('Search').fill('');
    await v.field('Search').press('/');
    if (await v.page.getByRole('dialog').count()) throw new Error('what is typed opens the palette');
    await v.heading('People').click();
    await v.page.keyboard.press('/');
    await field.waitFor();
    await v.page.keyboard.type(key);
    await option(key).waitFor();
    if ((await field.inputValue()) !== key) throw new Error(`typed is ${await field.inputValue()}`);
    await v.page.keyboard.press('Enter');
    await v.heading(key).waitFor();
    await v.page.waitForURL(`**/t/${tenant}/production/flags/${key}`);

    await v.page.setViewportSize({ width: 360, height: 740 });
    await v.open('/platform/tenants');
    await v.page.getByRole('button', { name: /^Commands/ }).click();
    await option(key).waitFor();
    await v.inspect();
    await v.shot('platform-palette-360');
    await field.fill(name);
    await option(name).click();
    await v.page.waitForURL(`**/t/${tenant}/production/flags`);
    await v.heading('Flags').waitFor();
  },

  'the trail of the platform has names in place of ids': async (come) => {
    const other = await come();
    await other.signUp();
    const name = `Tenant ${randomUUID().slice(0, 8)}`;
    const { tenant } = other.place;
    await other.call('PATCH', `/api/v1/tenants/${tenant}`, { name });
    const { id: projectId } = await other.call('POST', '/api/v1/projects', { name: 'Web shop' });
    const [{ userId: owner }] = await other.call('GET', `/api/v1/tenants/${tenant}/users`);
    await other.call('POST', '/api/v1/flags', { key: 'checkout', type: 'boolean', projectId, owner });
    const v = await come();
    await enter(v);
    await v.open(`/platform/audit?userId=${owner}`);
    const entries = v.page.locator('details');
    await entries.filter({ hasText: 'created flag checkout' }).first().waitFor();
    for (const entry of await entries.all()) await entry.locator('summary').click();
    const created = entries.filter({ hasText: 'created flag checkout' });
    await created.getByText(name, { exact: true }).waitFor();
    await created.getByRole('row', { name: /Project/ }).getByText('Web shop').waitFor(); // prettier-ignore
    await created.getByRole('row', { name: /Owner/ }).getByText(other.email).waitFor(); // prettier-ignore
    for (const text of await entries.locator('table').allInnerTexts())
      if (/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!@)/.test(text)) throw new Error(`an entry shows an id: ${text}`);
    await v.inspect();
    await v.shot('platform-trail');
  },

  'who invited somebody to the platform is told who accepted': async (come) => {
    const v = await come();
    await enter(v);
    const email = `${randomUUID()}@example.com`;
    await v.call('POST', '/api/v1/admin/invitations', { email, role: 'viewer' });
    const invited = await come();
    await invited.signUp(email);
    await invited.call('POST', '/api/v1/admin/invitations/accept');
    await v.until('the notification has arrived', async () => {
      const { notifications } = await v.call('GET', '/api/v1/notifications');
      return notifications.some(({ actionType }) => actionType === 'invitation');
    });
    await v.page.reload();
    await v.page.getByRole('button', { name: /^Notifications, \d+ unread/ }).click();
    const inbox = v.page.getByRole('region', { name: 'Notifications' });
    await inbox.getByText(`${email} has accepted it`).waitFor();
    await v.inspect();
    await v.shot('platform-accepted');
    await inbox.getByRole('link', { name: 'Your invitation to the platform was accepted' }).first().click();
    await v.heading('Invitations').waitFor();
    await v.page.getByText(email).filter({ visible: true }).first().waitFor();
  },

  'somebody is invited to the platform, and the invitation is taken back, at 360 px': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark', refused: [422] });
    await enter(v);
    await v.open('/platform/invitations');
    await v.button('Invite').click();
    await v.field('Email').fill('nonsense');
    await v.button('Send the invitation').click();
    await v.page
      .getByRole('dialog')
      .getByText(/^Email .*\.$/)
      .waitFor();
    const email = `${randomUUID()}@example.com`;
    await v.field('Email').fill(email);
    await v.button('Send the invitation').click();
    await v.button(`Revoke the invitation of ${email}`).click();
    await v.button('Revoke').click();
    await v.page.getByRole('row', { name: email }).getByText('Revoked').waitFor();
    await v.inspect();
    await v.shot('invitations-360');
    await v.open('/platform/service');
    await v.page.getByRole('row', { name: 'oauth_clients' }).waitFor();
    await v.inspect();
    await v.shot('service-360');
    await v.open(`/platform/people?q=${superUser}`);
    await v.page.getByLabel(`Platform role of ${superUser}`).filter({ visible: true }).waitFor();
    await v.inspect();
    await v.shot('people-360');
  },
};
