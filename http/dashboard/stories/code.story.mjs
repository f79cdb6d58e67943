import { randomUUID } from 'node:crypto';

const languages = ['Go', 'JavaScript, server', 'JavaScript, web', 'Python', 'Java', '.NET', 'curl'];

const dialog = (v) => v.page.getByRole('dialog');
const program = (v) =>
  dialog(v)
    .getByRole('figure', { name: /^Program in / })
    .locator('pre');
const copied = (v) => v.page.evaluate(() => navigator.clipboard.readText());

export default {
  'a flag is used in code in any language, with a new client': async (come) => {
    const v = await come({ permissions: ['clipboard-read', 'clipboard-write'] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'price', type: 'number', defaultValue: 5 });
    await v.page.evaluate(() => navigator.clipboard.writeText(''));
    for (const page of ['flags', 'flags/price']) {
      await v.open(`/t/${tenant}/development/${page}`);
      await v.button('Copy the key price').click();
      await v.button('Copied').waitFor();
      if ((await copied(v)) !== 'price') throw new Error(`the copied key is ${await copied(v)}`);
      await v.page.evaluate(() => navigator.clipboard.writeText(''));
    }

    await v.button('Use in code').click();
    await v.focused('Name of the client');
    for (const language of languages) {
      await dialog(v).getByLabel('Language').selectOption(language);
      const text = await program(v).innerText();
      const parts = ['price', process.env.SERVICE_URL, 'development'];
      if (language !== 'JavaScript, web') parts.push('YOUR_CLIENT_SECRET');
      for (const part of parts) if (!text.includes(part)) throw new Error(`${language} lacks ${part}:\n${text}`);
    }
    await v.inspect();
    await v.shot('code');
    const docs = await dialog(v).getByRole('link', { name: 'All calls of the API' }).getAttribute('href');
    if ((await fetch(docs)).status !== 200) throw new Error(`${docs} is not there`);

    await dialog(v).getByRole('button', { name: 'Create a client' }).click();
    await dialog(v).getByText('The secret of Backend is shown only once').waitFor();
    const secret = await dialog(v).getByRole('figure', { name: 'Client secret' }).locator('pre').innerText();
    await v.inspect();
    await v.shot('code-client');
    await dialog(v).getByRole('button', { name: 'Close', exact: true }).click();
    await v.heading('Close without the secret?').waitFor();
    await v.button('Stay').click();
    await dialog(v).getByRole('figure', { name: 'Program in curl' }).getByRole('button', { name: 'Copy' }).click();
    await v.until('the program is copied', async () => (await copied(v)).includes(secret));
    await dialog(v).getByRole('button', { name: 'Close', exact: true }).click();
    await dialog(v).waitFor({ state: 'detached' });

    // The browser remembers the language.
    await v.page.reload();
    await v.button('Use in code').click();
    await dialog(v).getByRole('figure', { name: 'Program in curl' }).waitFor();
    await v.page.keyboard.press('Escape');

    // The list of clients says when each evaluated last.
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
    await v.open(`/t/${tenant}/development/clients`);
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

    // A new client shows a program for the flag that was opened last.
    await v.button('New client').click();
    await v.field('Name').fill('Reports');
    await v.button('Create').click();
    await v.heading('The secret').waitFor();
    await dialog(v).getByRole('figure', { name: 'Program in curl' }).getByText('evaluate/flags/price').waitFor();
    await v.inspect();
    await dialog(v).getByRole('figure', { name: 'Program in curl' }).getByRole('button', { name: 'Copy' }).click();
    await v.button('I have saved it').click();
    await dialog(v).waitFor({ state: 'detached' });
  },

  'a developer finds the programs on a phone and by keyboard, and asks an admin for a client': async (come) => {
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
    await dialog(v).getByRole('figure', { name: 'Program in Python' }).waitFor();
    await v.inspect();
    await v.shot('code-phone');
    await v.page.keyboard.press('Escape');
    await v.until('the focus is back', () => v.button('Use in code').evaluate((b) => b === document.activeElement));
  },
};
