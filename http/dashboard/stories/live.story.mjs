import { randomUUID } from 'node:crypto';

/** Two members of one tenant. */
async function two(come, options) {
  const [v, w] = [await come(options), await come(options)];
  await v.signUp();
  const email = `${randomUUID()}@example.com`;
  await v.call('POST', `/api/v1/tenants/${v.place.tenant}/users`, { email, role: 'developer' });
  await w.signUp(email);
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
    await w.switch('shared').click();
    await v.page.getByRole('switch', { name: 'shared', checked: true }).waitFor();
    await v.page.getByText(`Changed by ${w.email}`).waitFor();
    await v.inspect();
    await v.shot('live-row');
    if (await w.page.getByText('Changed by').count()) throw new Error('one’s own change is marked');

    await v.link('shared').click();
    await v.field('Name').fill('Mine');
    await w.call('PATCH', `/api/v1/flags/shared`, { description: 'Theirs' });
    await v.page.getByText(`${w.email} has changed this flag. What you are typing is kept.`).waitFor();
    await v.until('theirs is there', async () => (await v.field('Description').inputValue()) === 'Theirs');
    if ((await v.field('Name').inputValue()) !== 'Mine') throw new Error('what was typed is lost');
    await v.inspect();
    await v.shot('live-flag');
    await w.call('PATCH', `/api/v1/flags/shared`, { name: 'Theirs' });
    await v.heading('Somebody else has changed the same meanwhile').waitFor();
    await v.button('Keep mine').click();
    await v.button('Seen').click();
    await v.button('Save').click();
    await v.until('mine stands', async () => (await v.call('GET', '/api/v1/flags/shared')).name === 'Mine');
  },

  'what is typed stays while somebody else deletes the flag, and brings it back': async (come) => {
    const [v, w] = await two(come, { refused: [404] });
    await v.call('POST', '/api/v1/flags', { key: 'gone', type: 'boolean' });
    await v.open(`/t/${v.place.tenant}/production/flags/gone`);
    await v.field('Name').fill('Mine');
    await w.call('DELETE', '/api/v1/flags/gone');
    await v.button('Bring it back').waitFor();
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
    await v.switch('afar').click();
    await v.until('it is on here', async () => (await v.call('GET', '/api/v1/flags/afar')).enabled);

    await v.link('afar').click();
    await v.page.getByRole('switch', { name: 'afar in development', checked: true }).waitFor();
    await v.button('Seen').click();
    await w.call('POST', '/api/v1/flags/afar/disable', undefined, '', 'development');
    await v.page.getByText(`${w.email} has changed this flag.`).waitFor();
    await v.page.getByText('Switched off in development').waitFor();
    await v.page.getByRole('switch', { name: 'afar in development', checked: false }).waitFor();
    await v.inspect();
    await v.switch('afar').click();
    await v.until('it is off here', async () => !(await v.call('GET', '/api/v1/flags/afar')).enabled);
  },
};
