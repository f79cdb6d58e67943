import { randomUUID } from 'node:crypto';

/** Two members of one tenant. */
async function two(come, options) {
  const [v, w] = [await come(options), await come(options)];
  await v.signUp();
  const email = `${randomUUID()}@example.com`;
  await v.call('POST', `/api/v1/tenants/${v.place.tenant}/users`, { email, role: 'developer' });
  await w.signUp(email);
  await w.open(`/t/${v.place.tenant}/production/flags`);
  await w.heading('Flags').waitFor();
  return [v, w];
}

export default {
  'what others change is shown and marked, and takes nothing from what is typed': async (come) => {
    const [v, w] = await two(come, { refused: [412] });
    await v.call('POST', '/api/v1/flags', { key: 'shared', type: 'boolean' });
    const flags = `/t/${v.place.tenant}/production/flags`;
    const heard = v.page.waitForRequest('**/api/v1/flags/stream');
    await v.page.reload();
    if ((await heard).url().includes('?')) throw new Error('the stream has something in its address');
    await v.switch('shared').waitFor();
    await w.open(flags);
    await w.turn('shared');
    await v.switch('shared', { checked: true }).waitFor();
    await v.page.getByText(`Changed by ${w.email}`).waitFor();
    await v.inspect();
    await v.shot('live-row');
    if (await w.page.getByText('Changed by').count()) throw new Error('one’s own change is marked');

    await v.link('shared').click();
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.field('Name').fill('Mine');
    await w.call('PATCH', `/api/v1/flags/shared`, { description: 'Theirs' });
    await v.page.getByText(`${w.email} has changed this flag. Your input is not lost.`).waitFor();
    await v.until('theirs is there', async () => (await v.field('Description').inputValue()) === 'Theirs');
    if ((await v.field('Name').inputValue()) !== 'Mine') throw new Error('what was typed is lost');
    await v.inspect();
    await v.shot('live-flag');
    await w.call('PATCH', `/api/v1/flags/shared`, { name: 'Theirs' });
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.page.getByRole('alert').getByText(w.email).waitFor();
    await v.button('Seen').waitFor({ state: 'detached' }); // the news is told once
    await v.inspect();
    await v.button('Keep mine').click();
    await v.page.getByRole('form').getByText('Theirs', { exact: true }).waitFor(); // what is saved is compared with theirs
    await v.button('Save').click();
    await v.until('mine stands', async () => (await v.call('GET', '/api/v1/flags/shared')).name === 'Mine');
  },

  'who deletes, reverts or switches what others have changed meanwhile sees who did what, and decides': async (
    come,
  ) => {
    const [v, w] = await two(come, { refused: [404, 412] });
    // At first no events arrive.
    await v.page.route('**/api/v1/flags/stream', (route) => route.fulfill({ status: 404 }));
    await v.call('POST', '/api/v1/flags', { key: 'shared', type: 'string' });
    await v.call('POST', '/api/v1/flags/shared/variations', { name: 'red', value: 'red' });
    const path = `/t/${v.place.tenant}/production/flags/shared`;
    const overview = `${path}?tab=overview`;
    const dialog = v.page.getByRole('dialog');
    const press = (name) => dialog.getByRole('button', { name, exact: true }).click();
    const told = async (what, ...more) => {
      const alert = v.page.getByRole('alert').filter({ hasText: 'the flag has changed meanwhile' });
      await alert.getByText(w.email).waitFor();
      for (const text of [what, ...more]) await alert.getByText(text).first().waitFor();
      await v.inspect();
    };
    await v.open(overview);
    await v.button('Delete red').click();
    await w.call('PATCH', '/api/v1/flags/shared', { name: 'Theirs' }, 'by agreement');
    await dialog.getByLabel('Reason').fill('out of use');
    await press('Delete');
    await told('Changed', 'Theirs', '“by agreement”');
    await v.shot('meanwhile-value');
    if ((await dialog.getByLabel('Reason').inputValue()) !== 'out of use') throw new Error('the reason is lost');
    await press('Delete');
    await dialog.waitFor({ state: 'detached' });
    if ((await v.call('GET', '/api/v1/flags/shared')).variations.length) throw new Error('the value is still there');

    await v.button('Delete the flag').click();
    await v.field('Type shared to confirm').fill('shared');
    const rules = [{ name: 'Staff', conditions: [], serve: { value: 'x' } }];
    await w.call('PUT', '/api/v1/flags/shared/rules', { rules }, '', 'development');
    await press('Delete');
    await told('Rules changed in development', 'Rule “Staff”');
    await v.shot('meanwhile-delete');
    await press('Cancel');
    await dialog.waitFor({ state: 'detached' });
    await v.call('GET', '/api/v1/flags/shared');

    const development = (checked) => v.switch('shared', { environment: 'development', checked });
    await w.call('PATCH', '/api/v1/flags/shared', { name: 'Theirs again' });
    await development(false).click();
    await told('Not switched in development', 'Theirs again');
    await v.shot('meanwhile-switch');
    await v.button('Leave it off').click();
    await v.button('Leave it off').waitFor({ state: 'detached' });
    await w.call('PATCH', '/api/v1/flags/shared', { name: 'Theirs once more' });
    await development(false).click();
    await told('Theirs once more');
    await v.page.setViewportSize({ width: 360, height: 740 });
    await v.inspect();
    await v.shot('meanwhile-switch-360');
    await v.button('Switch on anyway').click();
    await v.until(
      'it is on there',
      async () => (await v.call('GET', '/api/v1/flags/shared', undefined, '', 'development')).enabled,
    );
    await development(true).waitFor();

    await v.open(`${path}?tab=history&version=1`);
    await v.button('Revert').click();
    await w.call('PATCH', '/api/v1/flags/shared', { name: 'Theirs at last' });
    await press('Revert');
    await told('Theirs at last');
    await v.shot('meanwhile-revert-360');
    await press('Revert');
    await dialog.waitFor({ state: 'detached' });
    await v.until('it is as it was', async () => (await v.call('GET', '/api/v1/flags/shared')).name === 'shared');

    // A page with events reports it before.
    await v.page.unroute('**/api/v1/flags/stream');
    await v.page.emulateMedia({ colorScheme: 'dark' });
    const heard = v.page.waitForResponse('**/api/v1/flags/stream');
    await v.open(overview);
    await heard;
    await v.button('Delete the flag').click();
    await dialog.waitFor();
    await w.call('PATCH', '/api/v1/flags/shared', { description: 'Needed' });
    await told('Needed');
    await v.shot('meanwhile-heard-360-dark');
    await v.field('Type shared to confirm').fill('shared');
    await press('Delete');
    await v.heading('Flags').waitFor();
  },

  'what is typed stays while somebody else deletes the flag, and brings it back': async (come) => {
    const [v, w] = await two(come, { refused: [404] });
    await v.call('POST', '/api/v1/flags', { key: 'gone', type: 'boolean' });
    await v.open(`/t/${v.place.tenant}/production/flags/gone?tab=overview`);
    await v.field('Name').fill('Mine');
    await w.call('DELETE', '/api/v1/flags/gone');
    await v.button('Restore it').waitFor();
    await v.field('Name').waitFor({ state: 'hidden' });
    await v.inspect();
    await w.call('POST', '/api/v1/flags/gone/revert', { version: 1 });
    await v.field('Name').waitFor();
    if ((await v.field('Name').inputValue()) !== 'Mine') throw new Error('what was typed is lost');
    await v.button('Save').click();
    await v.until('mine stands', async () => (await v.call('GET', '/api/v1/flags/gone')).name === 'Mine');
  },

  'what others change in another environment is shown, and refuses nothing here': async (come) => {
    const [v, w] = await two(come);
    await v.call('POST', '/api/v1/flags', { key: 'afar', type: 'boolean' });
    const flags = `/t/${v.place.tenant}/production/flags`;
    await v.page.reload();
    await v.switch('afar').waitFor();
    await w.open(flags);
    await w.switch('afar').waitFor();
    await w.call('POST', '/api/v1/flags/afar/enable', undefined, '', 'development');
    await v.page.getByText(`Changed by ${w.email} in development`).waitFor();
    await v.turn('afar');
    await v.until('it is on here', async () => (await v.call('GET', '/api/v1/flags/afar')).enabled);

    await v.link('afar').click();
    await v.switch('afar', { environment: 'development', checked: true }).waitFor();
    await v.button('Seen').click();
    await w.call('POST', '/api/v1/flags/afar/disable', undefined, '', 'development');
    await v.page.getByText(`${w.email} has changed this flag.`).waitFor();
    await v.page.getByText('Switched off in development').waitFor();
    await v.switch('afar', { environment: 'development', checked: false }).waitFor();
    await v.inspect();
    await v.turn('afar');
    await v.until('it is off here', async () => !(await v.call('GET', '/api/v1/flags/afar')).enabled);
  },
};
