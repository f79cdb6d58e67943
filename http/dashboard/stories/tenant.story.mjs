import { randomUUID } from 'node:crypto';

const nameOfDialog = (v) => v.page.getByRole('dialog');

// Names in right-to-left letters stay apart.
const isolated = (name) => (/^\w+$/.test(name) ? name : `\u2068${name}\u2069`);

/** Types a time into a field as a person does, part by part. */
async function typeTime(field, time) {
  const two = (n) => String(n).padStart(2, '0');
  const at = new Date(time);
  await field.focus();
  await field.pressSequentially(two(at.getMonth() + 1) + two(at.getDate()) + at.getFullYear());
  await field.press('ArrowRight'); // a year may have six digits
  await field.pressSequentially([at.getHours() % 12 || 12, at.getMinutes(), at.getSeconds()].map(two).join(''));
  await field.pressSequentially(at.getHours() < 12 ? 'a' : 'p');
}

export default {
  'a tenant is renamed, another one is created, and both are deleted': async (come) => {
    const v = await come({ refused: [403, 404, 422] }); // the first two are reads of a deleted tenant
    await v.signUp();
    const first = v.place.tenant;
    await v.page.getByRole('navigation').getByRole('link', { name: 'Settings', exact: true }).click();
    await v.heading('Settings').waitFor();
    await v.inspect();
    await v.field('Name').fill('مؤسسة');
    await v.field('Email').fill('ops');
    await v.button('Save').click();
    await v.page.getByText(/^Email must be an e-mail address/).waitFor();
    await v.field('Email').fill('ops@example.com');
    await v.button('Save').click();
    await v.page.getByText('The settings are saved.').waitFor();
    const switcher = v.page.getByRole('combobox', { name: 'Tenant', exact: true });
    await v.until('the switcher has the new name', async () => (await switcher.inputValue()) === 'مؤسسة');
    await v.shot('tenant-settings');
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.inspect();
    await v.shot('tenant-settings-phone');
    await v.page.setViewportSize({ width: 1280, height: 800 });

    // By keyboard.
    await v.button('New tenant').focus();
    await v.page.keyboard.press('Enter');
    await v.focused('Name of the tenant');
    await v.inspect();
    await v.page.keyboard.type('Second');
    await v.page.keyboard.press('Enter');
    await v.heading('Flags').waitFor();
    await v.until('it is open', () => v.place.tenant !== first);

    const remove = async (name) => {
      await v.page.getByRole('navigation').getByRole('link', { name: 'Settings', exact: true }).click();
      await v.button('Delete the tenant').focus();
      await v.page.keyboard.press('Enter');
      await v.focused(`Type ${isolated(name)} to confirm`);
      await v.page.keyboard.type(name);
      await v.page.keyboard.press('Enter');
    };
    await remove('Second');
    await v.until('the other one is open', () => v.place.tenant === first);
    await v.heading('Flags').waitFor();
    await remove('مؤسسة');
    await v.page.getByText('You are a member of no tenant.').waitFor();
    await v.inspect();
    await v.button('New tenant').click();
    await v.field('Name of the tenant').fill('Third');
    await v.button('Create').click();
    await v.heading('Flags').waitFor();
  },

  'all flags are reverted to a time, after its dry run in words': async (come) => {
    const v = await come({ refused: [403, 429] });
    await v.signUp();
    const { tenant } = v.place;
    const flag = (key, text) => v.call('PATCH', `/api/v1/flags/${key}`, { name: text });
    for (const key of ['a', 'b', 'c', 'd']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    const time = Math.ceil(Date.now() / 1000) * 1000;
    await v.until('the second is over', () => Date.now() > time);
    await flag('a', 'Changed');
    await flag('b', 'Changed');
    await v.call('DELETE', '/api/v1/flags/c');
    await v.call('POST', '/api/v1/flags', { key: 'e', type: 'boolean' });

    await v.open(`/t/${tenant}/production/settings`);
    await typeTime(v.field('As they were at'), time);
    await v.field('Reason').pressSequentially('a bad release');
    await v.page.keyboard.press('Enter');
    const told = '2 flags change, 1 deleted flag comes back, 1 flag that was created since stays.';
    await nameOfDialog(v).getByText(told, { exact: true }).waitFor();
    await v.inspect();
    await v.shot('tenant-revert');
    if ((await v.call('GET', '/api/v1/flags/a')).name !== 'Changed') throw new Error('the dry run has changed a flag');
    await v.button('Revert 3 flags').click();
    const done = '2 flags were reverted, 1 deleted flag came back, 1 flag that was created since stayed.';
    await v.page.getByText(done).waitFor();
    const flags = await v.call('GET', '/api/v1/flags');
    const names = flags.map(({ key, name }) => `${key} ${name}`.trim()).join(', ');
    if (!/^a\b(?! Changed).*b\b(?! Changed).*c.*d.*e/.test(names)) throw new Error(`the flags are ${names}`);
    const [{ reason }] = await v.call('GET', '/api/v1/flags/c/history');
    if (reason !== 'a bad release') throw new Error(`the reason is ${reason}`);

    await v.button('Show what would change').click();
    await nameOfDialog(v).getByText('1 flag that was created since stays.', { exact: true }).waitFor();
    await v.until('there is nothing to revert', () => v.button('Revert 0 flags').isDisabled());
    await v.button('Cancel').click();

    // The service ends a revert after its first part, in which a flag failed.
    await flag('a', 'Changed');
    await v.page.route('**/api/v1/flags/revert', async (route) => {
      const { dryRun, cursor } = route.request().postDataJSON();
      if (dryRun) return route.continue();
      const headers = { 'Retry-After': '7' };
      if (cursor) return route.fulfill({ status: 429, headers, json: { status: 429 } });
      const response = await route.fetch();
      const failed = [{ key: 'b', detail: 'it is too large' }];
      await route.fulfill({ response, json: { ...(await response.json()), failed, cursor: 'more' } });
    });
    await v.button('Show what would change').click();
    await v.button('Revert 1 flag').click();
    const notice = v.page.getByRole('alert');
    await notice.getByText(/^1 flag was reverted, .*1 flag could not be reverted\./).waitFor();
    await notice.getByText(/There were too many requests\. Try again in 7 seconds\./).waitFor();
    await notice.getByText('b: it is too large').waitFor();
    await v.inspect();
    await v.open(`/t/${randomUUID()}/production/settings`);
    await v.page.getByText('You are not a member of this tenant. Choose another one above.').waitFor();
  },

  'a sandbox says until when it takes changes, and is reset': async (come) => {
    const v = await come();
    await v.signUp(`${randomUUID()}@example.com`);
    await v.open(`/t/${v.place.tenant}/production/settings`);
    await v.button('New tenant').click();
    await v.field('Name of the tenant').fill('Try');
    await v.page.getByRole('checkbox', { name: /^A sandbox/ }).check();
    await v.button('Create').click();
    await v.page.getByText(/^This is a sandbox. It takes changes until /).waitFor();
    await v.call('POST', '/api/v1/flags', { key: 'mine', type: 'boolean' });
    await v.inspect();
    await v.shot('sandbox');
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.inspect();
    await v.button('Reset').focus();
    await v.page.keyboard.press('Enter');
    await nameOfDialog(v)
      .getByText(/become the demo data again/)
      .waitFor();
    await v.inspect();
    await nameOfDialog(v).getByRole('button', { name: 'Reset', exact: true }).click();
    await v.page.getByText('The sandbox is reset.').waitFor();
    const keys = (await v.call('GET', '/api/v1/flags')).map(({ key }) => key);
    if (keys.includes('mine') || !keys.includes('new-checkout')) throw new Error(`the flags are ${keys}`);
  },
};
