import { randomUUID } from 'node:crypto';

const languages = ['Go', 'JavaScript, server', 'JavaScript, web', 'Python', 'Java', '.NET', 'curl'];

const dialog = (v) => v.page.getByRole('dialog');
const program = (v) =>
  dialog(v)
    .getByRole('figure', { name: /^Program in / })
    .locator('pre');
const copied = (v) => v.page.evaluate(() => navigator.clipboard.readText());

/** Returns the status of an evaluation of the flag price with a key. */
async function evaluate(v, key) {
  const response = await fetch(`${v.url}/ofrep/v1/evaluate/flags/price`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: '{"context":{"targetingKey":"user-42"}}',
  });
  return response.status;
}

export default {
  'a flag is used in code in any language, with a new key': async (come) => {
    const v = await come({ permissions: ['clipboard-read', 'clipboard-write'] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'price', type: 'number', defaultValue: 5 });
    await v.page.evaluate(() => navigator.clipboard.writeText(''));
    for (const page of ['flags', 'flags/price']) {
      await v.open(`/t/${tenant}/development/${page}`);
      // stories that run at the same time share the clipboard
      await v.until('the key is copied', async () => {
        await v.page.getByRole('button', { name: /^(Copy the key price|Copied)$/ }).click();
        await v.button('Copied').waitFor();
        return (await copied(v)) === 'price';
      });
      await v.page.evaluate(() => navigator.clipboard.writeText(''));
    }

    await v.button('Use in code').click();
    await v.focused('Language');
    for (const language of languages) {
      await dialog(v).getByLabel('Language').selectOption(language);
      const text = await program(v).innerText();
      const placeholder = language === 'JavaScript, web' ? 'YOUR_BROWSER_KEY' : 'YOUR_SERVER_KEY';
      for (const part of ['price', process.env.SERVICE_URL, placeholder])
        if (!text.includes(part)) throw new Error(`${language} lacks ${part}:\n${text}`);
    }
    await v.inspect();
    await v.shot('code');
    const docs = await dialog(v).getByRole('link', { name: 'All calls of the API' }).getAttribute('href');
    if ((await fetch(docs)).status !== 200) throw new Error(`${docs} is not there`);

    await dialog(v).getByRole('button', { name: 'Create a key' }).click();
    await dialog(v).getByText('The key of Backend is shown only once').waitFor();
    const key = await dialog(v).getByRole('figure', { name: 'Key', exact: true }).locator('pre').innerText();
    await v.inspect();
    await v.shot('code-key');
    await dialog(v).getByRole('button', { name: 'Close', exact: true }).click();
    await v.heading('Close without the secret?').waitFor();
    await v.button('Stay').click();
    await dialog(v).getByRole('figure', { name: 'Program in curl' }).getByRole('button', { name: 'Copy' }).click();
    await v.until('the program is copied', async () => (await copied(v)).includes(key));
    await v.until('the key evaluates', async () => (await evaluate(v, key)) === 200);

    // A web page has a key of another kind, which is no secret.
    await dialog(v).getByLabel('Language').selectOption('JavaScript, web');
    await dialog(v).getByText('Browsers do not see this flag yet').waitFor();
    await dialog(v).getByRole('button', { name: 'Create a key' }).click();
    await dialog(v).getByText('The key of Web page is public').waitFor();
    await program(v)
      .getByText(/Bearer pk_/)
      .waitFor();
    await v.inspect();
    await v.shot('code-browser-key');
    await dialog(v).getByRole('button', { name: 'Close', exact: true }).click();
    await dialog(v).waitFor({ state: 'detached' });

    // The browser remembers the language.
    await v.page.reload();
    await v.button('Use in code').click();
    await dialog(v).getByRole('figure', { name: 'Program in JavaScript, web' }).waitFor();
    await dialog(v).getByRole('link', { name: 'All keys' }).click();
    await v.heading('Keys').waitFor();
    for (const name of ['Backend', 'Web page']) {
      const row = v.page.getByRole('row', { name: new RegExp(`^${name}`) });
      await row.getByText('development').filter({ visible: true }).first().waitFor();
    }
  },

  'a client has a secret, and the list says when it evaluated last': async (come) => {
    const v = await come({ permissions: ['clipboard-read', 'clipboard-write'] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'price', type: 'number', defaultValue: 5 });
    await v.open(`/t/${tenant}/development/clients`);
    await v.button('New client').click();
    await v.field('Name').fill('Backend');
    await v.button('Create').click();
    await v.heading('The secret').waitFor();
    const secretFigure = dialog(v).getByRole('figure', { name: 'Client secret' });
    const secret = await secretFigure.locator('pre').innerText();
    await v.inspect();
    await v.page.keyboard.press('Escape');
    await v.heading('Close without the secret?').waitFor();
    await v.button('Stay').click();
    await secretFigure.getByRole('button', { name: 'Copy' }).click();
    await v.button('I have saved it').click();
    await dialog(v).waitFor({ state: 'detached' });

    const [client] = await v.call('GET', '/api/v1/oauth/clients');
    const credentials = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: secret,
    });
    const answer = await fetch(`${v.url}/api/v1/oauth/token`, { method: 'POST', body: credentials });
    const { access_token } = await answer.json();
    const evaluated = await fetch(`${v.url}/ofrep/v1/evaluate/flags/price`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${access_token}`, 'Content-Type': 'application/json' },
      body: '{"context":{"targetingKey":"user-42"}}',
    });
    if (!evaluated.ok) throw new Error(`the client does not evaluate: ${evaluated.status}`);
    await v.page.getByRole('columnheader', { name: 'Last evaluation' }).waitFor();
    const used = v.page
      .getByRole('row', { name: /^Backend/ })
      .getByRole('cell')
      .nth(2);
    await v.until('the evaluation is counted', async () => {
      await v.page.reload();
      await used.getByText(/./).waitFor();
      return (await used.innerText()) === 'just now';
    });
    await v.inspect();
  },

  'a developer finds the programs on a phone and by keyboard, and asks an admin for a key': async (come) => {
    const admin = await come();
    await admin.signUp();
    const { tenant } = admin.place;
    await admin.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean' });
    const email = `${randomUUID()}@example.com`;
    await admin.call('POST', `/api/v1/tenants/${tenant}/users`, { email, role: 'developer' });
    const v = await come({ viewport: { width: 390, height: 800 } });
    await v.signUp(email);
    await v.open(`/t/${tenant}/production/flags/cart`);
    await v.button('Use in code').focus();
    await v.page.keyboard.press('Enter');
    await dialog(v).getByText('Ask an admin of the tenant').waitFor();
    await v.focused('Language');
    await v.page.keyboard.type('Python');
    // The program is wider than a phone: the keyboard can scroll it.
    await dialog(v).getByRole('group', { name: 'Program in Python' }).and(v.page.locator('[tabindex="0"]')).waitFor();
    await v.inspect();
    await v.shot('code-phone');
    await v.page.keyboard.press('Escape');
    await v.until('the focus is back', () => v.button('Use in code').evaluate((b) => b === document.activeElement));
  },
};
