import { randomUUID } from 'node:crypto';

const dialog = (v) => v.page.getByRole('dialog');
const keyFigure = (v, name) => dialog(v).getByRole('figure', { name, exact: true }).locator('pre');

/** Returns the status of an evaluation with a key. */
async function evaluate(v, key, flag) {
  const response = await fetch(`${v.url}/ofrep/v1/evaluate/flags/${flag}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: '{"context":{"targetingKey":"user-42"}}',
  });
  return response.status;
}

export default {
  'a server key is created, shown once, rotated and deleted': async (come) => {
    const v = await come({ permissions: ['clipboard-read', 'clipboard-write'] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean' });
    await v.page.getByRole('navigation').getByRole('link', { name: 'Keys', exact: true }).click();
    await v.page.getByText('No key yet').waitFor();
    await v.button('New key').click();
    await v.field('Name').fill('Checkout');
    await dialog(v)
      .getByRole('radio', { name: /^Server/ })
      .check();
    await dialog(v).getByLabel('For an edge', { exact: true }).waitFor();
    if (await dialog(v).getByLabel('Origins', { exact: true }).count()) throw new Error('a server key has origins');
    await v.inspect();
    await v.button('Create').click();
    await v.heading('The key').waitFor();
    await dialog(v).getByText('The key of Checkout is shown only once').waitFor();
    const first = await keyFigure(v, 'Key').innerText();
    if (!/^sk_\w{26}$/.test(first)) throw new Error(`the key is ${first}`);
    await v.inspect();
    await v.shot('key-created');
    await v.page.keyboard.press('Escape');
    await v.heading('Close without the secret?').waitFor();
    await v.button('Stay').click();
    // The programs are for servers alone, and have the key.
    const languages = await dialog(v).getByLabel('Language').locator('option').allInnerTexts();
    if (languages.includes('JavaScript, web')) throw new Error(`a server key is for ${languages}`);
    await dialog(v).getByRole('figure', { name: 'Program in Go' }).getByText(first).waitFor();
    await dialog(v).getByRole('figure', { name: 'Key', exact: true }).getByRole('button', { name: 'Copy' }).click();
    await v.button('Copied').waitFor();
    await v.page.keyboard.press('Escape');
    await dialog(v).waitFor({ state: 'detached' });
    const row = v.page.getByRole('row', { name: /^Checkout/ });
    await row.getByText('Server', { exact: true }).filter({ visible: true }).waitFor();
    if ((await v.page.content()).includes(first)) throw new Error('the key is still there');
    await v.until('the key evaluates', async () => (await evaluate(v, first, 'cart')) === 200);
    await v.until('the evaluation is counted', async () => {
      await v.page.reload();
      await row.getByText('Server', { exact: true }).filter({ visible: true }).waitFor();
      return row.getByText('just now').count();
    });

    const rotated = async (endNow) => {
      await v.button('Rotate Checkout').click();
      await dialog(v).getByText('The old one works for another 24 hours.').waitFor();
      if (endNow) await dialog(v).getByLabel('End the old one now').check();
      await v.inspect();
      await v.button('Rotate').click();
      await v.heading('The key').waitFor();
      const key = await keyFigure(v, 'Key').innerText();
      await v.button('I have saved it').click();
      await dialog(v).waitFor({ state: 'detached' });
      await v.until('the new key evaluates', async () => (await evaluate(v, key, 'cart')) === 200);
      return key;
    };
    const second = await rotated(false);
    if ((await evaluate(v, first, 'cart')) !== 200) throw new Error('the old key has ended');
    const third = await rotated(true);
    for (const old of [first, second])
      await v.until('an old key has ended', async () => (await evaluate(v, old, 'cart')) === 401);

    await v.button('Delete Checkout').click();
    await dialog(v).getByText('Checkout stops working at once').waitFor();
    await v.inspect();
    await v.button('Delete').click();
    await v.page.getByText('No key yet').waitFor();
    await v.until('the deleted key is refused', async () => (await evaluate(v, third, 'cart')) === 401);
    await v.open(`/t/${tenant}/production/audit`);
    for (const did of ['created', 'rotated', 'deleted'])
      await v.page
        .locator('summary', { hasText: `${did} key Checkout` })
        .first()
        .waitFor();
  },

  'a browser key has origins, which change, and stays to be copied': async (come) => {
    const v = await come({ refused: [422], permissions: ['clipboard-read', 'clipboard-write'] });
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean', clientSide: true });
    await v.page.getByRole('navigation').getByRole('link', { name: 'Keys', exact: true }).click();
    await v.button('New key').click();
    await v.field('Name').fill('Web shop');
    const origins = dialog(v).getByLabel('Origins', { exact: true });
    await origins.fill('https://app.example.com/');
    await origins.press('Enter');
    await v.button('Create').click();
    await dialog(v)
      .getByText(/^Origin 1 must be an origin/)
      .waitFor();
    await v.inspect();
    await v.button('Remove https://app.example.com/').click();
    await origins.fill('https://app.example.com');
    await origins.press('Enter');
    await dialog(v).getByLabel('Signed contexts', { exact: true }).check();
    await v.shot('new-key');
    await v.button('Create').click();
    await dialog(v).getByText('The signing secret is shown only once').waitFor();
    const key = await keyFigure(v, 'Key').innerText();
    const secret = await keyFigure(v, 'Signing secret').innerText();
    await v.inspect();
    await v.button('I have saved it').click();
    await dialog(v).waitFor({ state: 'detached' });
    await v.page.getByText(key).waitFor();
    if ((await v.page.content()).includes(secret)) throw new Error('the signing secret is still there');
    await v.button('Copy the key Web shop').click();
    await v.until('it is copied', async () => (await v.page.evaluate(() => navigator.clipboard.readText())) === key);
    await v.inspect();
    await v.shot('keys');

    await v.button('Edit Web shop').click();
    await v.field('Name').fill('Store');
    await v.button('Remove https://app.example.com').click();
    await origins.fill('https://*.example.com');
    await origins.press('Enter');
    await v.field('Expires').fill('2126-01-02T03:04');
    await v.inspect();
    await v.button('Save').click();
    const row = v.page.getByRole('row', { name: /^Store/ });
    await row.getByRole('cell', { name: 'https://*.example.com', exact: true }).waitFor();
    const [changed] = await v.call('GET', '/api/v1/evaluation-keys');
    if (changed.origins.join() !== 'https://*.example.com' || !changed.expiresAt?.startsWith('2126-01-0'))
      throw new Error(`the key is ${JSON.stringify(changed)}`);

    await v.button('Rotate Store').click();
    await dialog(v).getByText('stays the same key').waitFor();
    await v.button('Rotate').click();
    await dialog(v).getByText('The signing secret is shown only once').waitFor();
    if ((await keyFigure(v, 'Signing secret').innerText()) === secret) throw new Error('the secret is the same');
    if ((await keyFigure(v, 'Key').innerText()) !== key) throw new Error('the key is another');
    await v.button('I have saved it').click();

    // Members see the list, on a phone too.
    const member = await come({ viewport: { width: 390, height: 800 } });
    const { tenant } = v.place;
    const email = `${randomUUID()}@example.com`;
    await v.call('POST', `/api/v1/tenants/${tenant}/users`, { email, role: 'viewer' });
    await member.signUp(email);
    await member.open(`/t/${tenant}/production/keys`);
    await member.page.getByText(key).waitFor();
    if (await member.button('New key').or(member.button('Rotate Store')).count())
      throw new Error('a viewer is offered changes');
    await member.inspect();
    await member.shot('keys-390');
  },

  'a flag is made visible to browsers, after its public values were listed': async (come) => {
    const v = await come();
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'hidden', type: 'boolean' });
    await v.call('POST', '/api/v1/flags', {
      key: 'color',
      type: 'string',
      defaultValue: 'grey',
      flag_variations: ['red', 'blue'].map((name) => ({ name, value: `the ${name}`, weight: 1 })),
    });
    const { key } = await v.call('POST', '/api/v1/evaluation-keys', {
      name: 'Web shop',
      kind: 'browser',
      environment: 'production',
    });
    const { variations } = await v.call('GET', '/api/v1/flags/color');
    const blue = variations.find(({ name }) => name === 'blue').id;
    const rule = (serve) => ({ conditions: [{ attribute: 'plan', op: 'in', values: ['pro'] }], serve });
    const rules = [{ value: 'loud' }, { variationId: blue }, { value: 'loud' }].map(rule);
    await v.call('PUT', '/api/v1/flags/color/rules', { rules }, undefined, 'production');
    for (const environment of ['production', 'development'])
      await v.call('PUT', '/api/v1/flags/color/fallthrough', { serve: { value: 'quiet' } }, undefined, environment);
    const hidden = await evaluate(v, key, 'color');
    if (hidden !== 404) throw new Error(`a hidden flag is answered with ${hidden}`);
    await v.open(`/t/${tenant}/production/flags/color?tab=overview`);
    await v.field('Seen by browsers').selectOption('true');
    const values = v.page.getByRole('list', { name: 'These values become public' });
    for (const value of ['"grey"', '"the red"', '"the blue"']) await values.getByText(value).waitFor();
    const served = v.page.getByRole('list', { name: /^Its rules and/ }).getByRole('listitem');
    await served.nth(1).waitFor();
    const lines = (await served.allTextContents())
      .map((line) => line.replace(/\s+/g, ' ').replace(' :', ':').trim())
      .sort();
    const expected = ['development: "quiet"', 'production: "loud", "the blue", "quiet"'];
    if (lines.join('; ') !== expected.join('; ')) throw new Error(`rules serve ${lines.join('; ')}`);
    await v.inspect();
    await v.shot('public-values');
    await v.button('Save').click();
    await values.waitFor({ state: 'detached' });
    await v.until('browsers see it', async () => (await evaluate(v, key, 'color')) === 200);
    await v.page.getByText('Everything that it serves is public').waitFor();

    await v.open(`/t/${tenant}/production/flags`);
    await v.link('hidden').waitFor();
    await v.field('Filter by browsers').selectOption('true');
    await v.link('hidden').waitFor({ state: 'detached' });
    await v.link('color').waitFor();
    await v.field('Filter by browsers').selectOption('false');
    await v.link('hidden').waitFor();
    await v.link('color').waitFor({ state: 'detached' });
    await v.inspect();
  },
};
