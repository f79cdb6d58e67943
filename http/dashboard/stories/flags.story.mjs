export default {
  'flags are made, searched, sorted and switched': async (come) => {
    const v = await come({ refused: [422] });
    await v.signUp();
    await v.button('New flag').click();
    await v.field('Key').fill('not a key');
    await v.button('Create').click();
    await v.page.getByText('Key has letters and digits').waitFor();
    await v.inspect();
    await v.field('Key').fill('checkout');
    await v.field('Name').fill('<img src=x onerror=alert(1)>');
    await v.field('Type').selectOption('string');
    await v.button('Create').click();
    await v.link('checkout').waitFor();
    await v.page.getByText('<img src=x onerror=alert(1)>').waitFor();
    for (const key of ['banner', 'search']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    await v.page.reload();
    await v.switch('checkout').click();
    await v.page.getByRole('switch', { name: 'checkout', checked: true }).waitFor();
    await v.until('the service has it', async () => (await v.call('GET', '/api/v1/flags/checkout')).enabled);
    await v.page.getByRole('combobox', { name: 'Environment' }).click();
    await v.page.getByRole('option', { name: 'development' }).click();
    await v.page.getByRole('switch', { name: 'checkout', checked: false }).waitFor();
    await v.until('the URL names it', () => v.place.environment === 'development');
    await v.page.keyboard.press('Escape');
    await v.page.locator('body').press('/');
    await v.page.keyboard.type('chec');
    await v.until('one is left', async () => (await v.page.getByRole('switch').count()) === 1);
    await v.page.reload();
    await v.until('it is still one', async () => (await v.page.getByRole('switch').count()) === 1);
    await v.field('Search').fill('');
    await v.button('Flag').click();
    await v.until(
      'the last is first',
      async () => (await v.page.getByRole('switch').first().getAttribute('aria-label')) === 'search',
    );
    await v.inspect();
    await v.page.keyboard.press('Control+k');
    await v.page.keyboard.type('bann');
    await v.page.getByRole('option', { name: 'banner' }).waitFor();
    await v.inspect();
    await v.page.keyboard.press('Enter');
    await v.until('the page of the flag', () => v.page.url().endsWith('/flags/banner'));
  },

  'the flags at 360 px, in the dark': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    await v.signUp();
    await v.inspect();
    await v.call('POST', '/api/v1/flags', {
      key: 'a-key-of-a-flag-that-is-so-long-that-it-cannot-be-shown-at-once',
      type: 'json',
    });
    await v.page.reload();
    await v.page.getByRole('switch').waitFor();
    await v.inspect();
    await v.shot('flags-360');
    await v.button('Menu').click();
    await v.page.getByRole('dialog').getByRole('link', { name: 'Flags' }).waitFor();
    await v.inspect();
  },

  'while the service is away the last state stands, and the page says so': async (come) => {
    const v = await come({ refused: [503] });
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'here', type: 'boolean' });
    await v.page.reload();
    await v.switch('here').waitFor();
    await v.page.route('**/api/v1/**', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: '{"status":503,"detail":"the service is starting"}',
      }),
    );
    await v.switch('here').click();
    await v.page.getByText('The service is away for a moment.').first().waitFor();
    await v.page.getByText('This is how things stood at').waitFor();
    await v.page.getByRole('switch', { name: 'here', checked: false }).waitFor();
    await v.inspect();
    await v.page.unroute('**/api/v1/**');
    await v.page.getByText('This is how things stood at').waitFor({ state: 'detached' });
  },
};
