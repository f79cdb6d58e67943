export default {
  'flags are made, searched, sorted and switched': async (come) => {
    const v = await come({ refused: [422] });
    await v.signUp();
    await v.button('New flag').click();
    await v.focused('Name');
    await v.page.keyboard.type('Crème <b>brûlée</b> 2');
    if ((await v.field('Key').inputValue()) !== 'creme-b-brulee-b-2')
      throw new Error('the key is not made from the name');
    await v.field('Key').fill('not a key');
    await v.field('Type').selectOption('json');
    await v.field('Default value').fill('{"most":');
    await v.button('Add variation').click();
    await v.focused('Name of variation 1');
    await v.button('Add variation').click();
    await v.field('Value of variation 2').fill('nonsense');
    await v.field('Tags').fill('x'.repeat(101));
    await v.button('Create').click();
    for (const wrong of [
      'Key must be letters and digits',
      'Default value must be valid JSON',
      'Name of variation 1 is required',
      'Value of variation 2 must be valid JSON',
      'Tag 1 must have at most',
    ])
      await v.page.getByText(wrong).waitFor();
    await v.inspect();
    await v.shot('new-flag-wrong');
    await v.field('Name').fill('<img src=x onerror=alert(1)>');
    await v.field('Key').fill('checkout');
    await v.field('Type').selectOption('string');
    await v.field('Name of variation 1').fill('short');
    await v.field('Value of variation 1').fill('buy');
    await v.button('Remove variation 2').click();
    await v.field('Tags').press('Backspace');
    await v.page.keyboard.type('shop, web');
    await v.button('Create').click();
    await v.heading('checkout').waitFor();
    await v.page.getByRole('status').getByText('checkout is created. It is off in every environment.').waitFor();
    await v.page.getByText('<img src=x onerror=alert(1)>').waitFor();
    const made = await v.call('GET', '/api/v1/flags/checkout');
    if (made.variations[0].value !== 'buy' || made.variations.length !== 1 || made.tags.join() !== 'shop, web')
      throw new Error(`made: ${JSON.stringify(made)}`);
    await v.open(`/t/${v.place.tenant}/production/flags`);
    await v.link('checkout').waitFor();
    for (const key of ['banner', 'search']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    await v.page.reload();
    await v.turn('checkout');
    await v.switch('checkout', { checked: true }).waitFor();
    await v.until('the service has it', async () => (await v.call('GET', '/api/v1/flags/checkout')).enabled);
    await v.page.getByRole('combobox', { name: 'Environment' }).click();
    await v.page.getByRole('option', { name: 'development' }).click();
    await v.until('the URL names it', () => v.place.environment === 'development');
    await v.switch('checkout', { checked: false }).waitFor();
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
      async () =>
        (await v.page.getByRole('switch').first().getAttribute('aria-label')) === 'Switch search on in development',
    );
    await v.inspect();
    await v.page.keyboard.press('Control+k');
    await v.page.getByRole('combobox', { name: 'Go to' }).pressSequentially('bann');
    await v.page.getByRole('option', { name: 'banner' }).waitFor();
    await v.inspect();
    await v.page.keyboard.press('Enter');
    await v.until('the page of the flag', () => v.page.url().endsWith('/flags/banner'));
  },

  'flags are switched and deleted many at once, and one that was deleted is brought back': async (come) => {
    const v = await come({ refused: [404] });
    await v.signUp();
    for (const key of ['one', 'two', 'three']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    await v.call('PATCH', '/api/v1/flags/two', { status: 'archived' });
    await v.page.reload();
    await v.field('Select all flags').check();
    await v.field('Select two').uncheck();
    await v.button('Switch on').click();
    await v.heading('Switch 2 flags on in production?').waitFor();
    await v.inspect();
    await v.page.getByRole('dialog').getByLabel('Reason').fill('all at once');
    await v.page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click();
    await v.switch('three', { checked: true }).waitFor();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    const [entry] = await v.call('GET', '/api/v1/flags/one/history');
    if (entry.reason !== 'all at once') throw new Error(`the reason is ${entry.reason}`);

    // A flag that another person has deleted meanwhile is reported, and the others are deleted.
    await v.field('Select one').check();
    await v.field('Select three').check();
    await v.inspect();
    await v.shot('flags-selected');
    await v.page.route('**/api/v1/flags/three', (route) =>
      route.fulfill({
        status: 404,
        contentType: 'application/problem+json',
        body: '{"status":404,"detail":"no flag"}',
      }),
    );
    await v.button('Delete').click();
    await v.field('Type 2 to confirm').fill('2');
    await v.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await v.page.getByText('1 flag was not changed').waitFor();
    await v.link('one').waitFor({ state: 'detached' });
    await v.inspect();
    await v.shot('flags-refused');
    await v.page.unroute('**/api/v1/flags/three');

    await v.link('three').click();
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.button('Delete the flag').click();
    await v.field('Type three to confirm').fill('three');
    await v.inspect();
    await v.field('Reason').last().fill('done with it');
    await v.button('Delete').click();
    await v.heading('Flags').waitFor();
    await v.link('three').waitFor({ state: 'detached' });
    await v.link('two').click();
    await v.page.getByRole('tab').first().waitFor(); // it counts as opened once it is shown
    await v.page.goBack();
    await v.page.keyboard.press('Control+k');
    const recent = v.page.getByRole('group', { name: 'Recent flags' });
    await recent.getByRole('option', { name: 'two' }).waitFor();
    if (await recent.getByRole('option', { name: 'three' }).count()) throw new Error('a deleted flag is recent');
    await v.page.keyboard.press('Escape');

    await v.open(`/t/${v.place.tenant}/production/flags/three`);
    await v.page.getByText('“done with it”').waitFor();
    await v.inspect();
    await v.shot('flag-deleted');
    await v.button('Restore it').click();
    await v.page.getByRole('dialog').getByRole('button', { name: 'Restore it' }).click();
    await v.switch('three', { checked: true }).waitFor();
  },

  'a number keeps its spelling where a flag is made, in the trail, and where it can go': async (come) => {
    const v = await come({ refused: [422] });
    await v.signUp();
    for (const [key, type, wrong, value] of [
      ['limits', 'json', '{"most":', '{"most":9007199254740993,"price":1.50}'],
      ['most', 'number', 'nonsense', '9007199254740993'],
    ]) {
      await v.button('New flag').click();
      await v.field('Key').fill(key);
      await v.field('Type').selectOption(type);
      await v.field('Default value').fill(wrong);
      await v.button('Create').click();
      await v.page.getByText(/^Default value (must be valid JSON|is not a number)/).waitFor();
      await v.field('Default value').fill(value);
      await v.button('Create').click();
      await v.heading(key).waitFor();
      await v.page.getByRole('tab', { name: 'Overview' }).click();
      await v.until('the page has what was typed', async () => {
        await v.field('Default value').waitFor();
        return (await v.field('Default value').inputValue()).replace(/\s/g, '') === value;
      });
      await v.open(`/t/${v.place.tenant}/production/flags`);
    }

    await v.open(`/t/${v.place.tenant}/production/audit`);
    const entry = v.page.locator('details', { hasText: 'limits' });
    await entry.locator('summary').click();
    await entry.getByText('"most": 9007199254740993').waitFor();
    await entry.getByText('"price": 1.50').waitFor();

    // A flag must have served one value for weeks before it is listed.
    await v.page.route('**/api/v1/cleanup?**', (route) =>
      route.fulfill({
        contentType: 'application/json',
        body: `[{"flagKey":"most","lifecycle":"settled","since":"2026-01-02T03:04:05Z","lastEvaluatedAt":"2026-01-02T03:04:05Z","clients":[],
          "outcome":{"value":{"most":9007199254740993,"price":1.50},"variationId":null,"variationName":null}}]`,
      }),
    );
    await v.open(`/t/${v.place.tenant}/production/cleanup`);
    await v.page.getByText('{"most":9007199254740993,"price":1.50}', { exact: true }).waitFor();
  },

  'flags are put into projects, and one sees what a link has narrowed the list by': async (come) => {
    const v = await come();
    await v.signUp();
    const { id } = await v.call('POST', '/api/v1/projects', { name: 'Shop' });
    await v.call('POST', '/api/v1/flags', { key: 'banner', type: 'boolean', tags: ['web'] });
    await v.page.reload();
    await v.link('banner').waitFor();
    const make = async (key, project) => {
      await v.button('New flag').click();
      await v.until('the project is there', async () => (await v.field('Project').inputValue()) === project);
      await v.field('Key').fill(key);
      await v.inspect();
      if (!project) await v.field('Project').selectOption('Shop');
      await v.button('Create').click();
      await v.heading(key).waitFor();
      const flag = await v.call('GET', `/api/v1/flags/${key}`);
      if (flag.projectId !== id) throw new Error(`it is in the project ${flag.projectId}`);
    };
    await make('cart', '');
    await v.page.goBack();

    // A flag created in the list of a project belongs to it.
    await v.page.getByRole('navigation').getByRole('link', { name: 'Projects', exact: true }).click();
    await v.link('Shop').click();
    await v.link('cart').waitFor();
    await v.link('banner').waitFor({ state: 'detached' });
    await make('basket', id);
    await v.page.goBack();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.field('Filter by project').selectOption('Project');
    await v.link('banner').waitFor();
    await v.open(`/t/${v.place.tenant}/production/flags?tag=web&projectId=${id}`);
    await v.page.getByText('No flag matches').waitFor();
    await v.inspect();
    await v.shot('flags-chips');
    await v.until(
      'the filters are those of the link',
      async () => (await v.field('Filter by tag').inputValue()) === 'web',
    );
    await v.field('Filter by project').selectOption('Project');
    await v.link('banner').waitFor();
    await v.link('cart').waitFor({ state: 'detached' });
    await v.field('Filter by tag').selectOption('Tag');
    await v.link('cart').waitFor();
    if (new URL(v.page.url()).searchParams.has('tag')) throw new Error('the URL still has the tag');
  },

  'who stops a change of many flags has no further one changed, here or where they go next': async (come) => {
    const v = await come();
    await v.signUp();
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const key of keys) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    await v.page.reload();
    let [began, go] = [0];
    const held = new Promise((resolve) => (go = resolve));
    await v.page.route('**/enable', async (route) => {
      began++;
      await held;
      await route.continue();
    });
    await v.field('Select all flags').check();
    await v.button('Switch on').click();
    const dialog = v.page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Switch on' }).click();
    await v.until('the first are under way', () => began === 4);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await v.page.keyboard.press('Escape');
    go();
    await v.page.getByText('2 selected').waitFor();
    await dialog.waitFor({ state: 'detached' });
    const on = [];
    for (const key of keys) if ((await v.call('GET', `/api/v1/flags/${key}`)).enabled) on.push(key);
    if (began !== 4 || on.length !== 4) throw new Error(`${began} began, and ${on} are on`);
  },

  'the flags at 360 px, in the dark': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark', refused: [422] });
    await v.signUp();
    await v.inspect();
    await v.button('New flag').click();
    await v.field('Key').fill('tagged');
    const { y, height } = await v.button('Create').boundingBox();
    if (y + height > 740) throw new Error(`the button ends ${y + height - 740} px below the window`);
    await v.field('Tags').fill('short');
    await v.field('Tags').press('Enter');
    await v.field('Tags').fill('long'.repeat(100));
    await v.button('Create').click();
    await v.page.getByText(/^Tag 2 /).waitFor();
    if (await v.page.getByRole('alert').count()) throw new Error('it is told at the top too');
    await v.inspect();
    await v.shot('new-flag-360');
    await v.button('Cancel').click();
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
    const v = await come();
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
    await v.page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click();
    await v.page.getByText('The service is temporarily unavailable.').first().waitFor();
    await v.button('Cancel').click();
    await v.page.getByText('The data is from').waitFor();
    await v.switch('here', { checked: false }).waitFor();
    await v.inspect();
    await v.page.unroute('**/api/v1/**');
    await v.page.getByText('The data is from').waitFor({ state: 'detached' });
  },
};
