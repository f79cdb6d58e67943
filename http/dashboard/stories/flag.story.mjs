async function open(v, flag) {
  await v.signUp();
  await v.call('POST', '/api/v1/flags', flag);
  await v.open(`/t/${v.place.tenant}/production/flags/${flag.key}?tab=overview`);
  await v.heading(flag.key).waitFor();
}

export default {
  'a flag is switched where one is and elsewhere, and its settings are changed with a reason': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'checkout', type: 'number', name: '<img src=x onerror=alert(1)>' });
    await v.page.getByText('<img src=x onerror=alert(1)>').waitFor();
    await v.turn('checkout');
    await v.switch('checkout', { checked: true }).waitFor();
    await v.switch('checkout', { environment: 'development' }).click();
    await v.until('both are on', async () => (await v.call('GET', '/api/v1/flags/checkout')).version === 3);
    await v.field('Tags').fill('web');
    await v.field('Tags').press('Enter');
    await v.field('Tags').fill('money');
    await v.field('Default value').fill('nonsense');
    await v.inspect();
    await v.button('Save').click();
    await v.page.getByText('Default value is not a number.').waitFor();
    await v.field('Default value').fill('9007199254740993');
    await v.field('Name').fill('x'.repeat(201));
    await v.button('Save').click();
    await v.page.getByText(/^Name must have at most 200 characters/).waitFor();
    await v.field('Name').fill('Checkout');
    await v.field('Reason').fill('Größer als zuvor');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    await v.inspect();
    const [entry] = await v.call('GET', '/api/v1/flags/checkout/history');
    if (entry.reason !== 'Größer als zuvor') throw new Error(`the reason is ${entry.reason}`);
    await v.page.reload();
    await v.until('the number kept its digits', async () => {
      await v.field('Default value').waitFor();
      return (await v.field('Default value').inputValue()) === '9007199254740993';
    });
    await v.page.getByText('By OFREP only').waitFor(); // 64 bits of floating point do not hold the number
    await v.link('money').click();
    await v.page.waitForURL('**/flags?tag=money');
    await v.link('checkout').waitFor();
  },

  'tags are chips, and may have commas in them': async (come) => {
    const v = await come();
    await open(v, { key: 'checkout', type: 'boolean', tags: ['team a, b', 'web'] });
    const changes = [];
    await v.page.route('**/api/v1/flags/checkout', (route) => {
      if (route.request().method() === 'PATCH') changes.push(route.request().postDataJSON());
      return route.fallback();
    });
    const save = async () => {
      await v.button('Save').click();
      await v.button('Save').waitFor({ state: 'detached' });
      return changes.at(-1);
    };
    const tags = v.field('Tags');
    await v.button('Remove team a, b').waitFor();
    await v.button('Remove web').waitFor();
    await v.field('Name').fill('Checkout');
    const renamed = await save();
    if (Object.keys(renamed).join() !== 'name') throw new Error(`also sent: ${JSON.stringify(renamed)}`);

    // Blank text and a tag that is there already are no change.
    await tags.fill('  ');
    await tags.press('Enter');
    await tags.fill('web');
    await tags.press('Enter');
    if (await v.button('Save').count()) throw new Error('nothing was added, and it is a change');
    await tags.fill('money, too');
    await tags.press('Enter');
    await v.inspect();
    const { tags: sent } = await save();
    if (JSON.stringify(sent) !== '["team a, b","web","money, too"]') throw new Error(`sent: ${JSON.stringify(sent)}`);
    await tags.press('Backspace');
    await v.button('Remove money, too').waitFor({ state: 'detached' });
    await v.button('Discard').click();
    await v.button('Remove money, too').waitFor();

    await v.page.getByRole('navigation').getByRole('link', { name: 'Flags', exact: true }).click();
    await v.button('New flag').click();
    await v.field('Key').fill('cart');
    await v.field('Tags').focus();
    await v.page.evaluate(() => {
      const clipboardData = new DataTransfer();
      clipboardData.setData('text', 'team a, b\n\nweb \n');
      document.activeElement.dispatchEvent(
        new ClipboardEvent('paste', { clipboardData, cancelable: true, bubbles: true }),
      );
    });
    await v.button('Create').click();
    await v.heading('cart').waitFor();
    const made = await v.call('GET', '/api/v1/flags/cart');
    if (JSON.stringify(made.tags) !== '["team a, b","web"]') throw new Error(`made: ${JSON.stringify(made.tags)}`);
  },

  'a flag has an owner and links, and its owner finds it': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'other', type: 'boolean' });
    const { tenant } = v.place;
    await v.open(`/t/${tenant}/production/flags?new=flag`);
    await v.field('Key').fill('cart');
    await v.field('Owner').selectOption({ label: v.email });
    await v.button('Add link').click();
    await v.page.keyboard.type('Plan'); // it has the focus
    await v.page.keyboard.press('Tab');
    await v.page.keyboard.type('http://wiki.example.com/cart');
    await v.inspect();
    await v.button('Create').click();
    await v.page.getByText('Address of link 1 must begin with https://.').waitFor();
    await v.field('Address of link 1').fill('https://wiki.example.com/cart');
    await v.button('Create').click();
    await v.heading('cart').waitFor();
    await v.open(`/t/${tenant}/production/flags`);

    await v.field('Filter by owner').selectOption({ label: 'My flags' });
    await v.until(
      'others are left out',
      async () => (await v.link('cart').count()) && !(await v.link('other').count()),
    );
    await v.inspect();
    await v.link('cart').click();
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    const plan = v.link('Plan');
    const attributes = [await plan.getAttribute('href'), await plan.getAttribute('rel')].join(' ');
    if (attributes !== 'https://wiki.example.com/cart noopener noreferrer') throw new Error(`it has ${attributes}`);

    // A row that was just added is no change yet.
    await v.button('Add link').click();
    await v.field('Title of link 2').waitFor();
    if (await v.button('Save').count()) throw new Error('an empty row is a change');
    await v.field('Title of link 2').fill('Metrics');
    await v.field('Address of link 2').fill('https://metrics.example.com/');
    await v.button('Remove link 1').press('Enter');
    if (!(await v.button('Add link').evaluate((it) => it === document.activeElement)))
      throw new Error('the focus is lost');
    await v.field('Owner').selectOption({ label: 'None' });
    await v.inspect();
    await v.shot('owner-links');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    await v.link('Metrics').waitFor();
    const { owner, links } = await v.call('GET', '/api/v1/flags/cart');
    if (owner !== null || links.length !== 1) throw new Error(`it has ${JSON.stringify({ owner, links })}`);
    await v.open(`/t/${tenant}/production/flags?owner=me`);
    await v.page.getByText('No flag matches').waitFor();
  },

  'variations are added, weighed and deleted': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'color', type: 'string' });
    // A person who looks for a rollout first is led to what it needs.
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.page.getByText('The value of a flag that is on, ""').waitFor({ state: 'attached' });
    await v.inspect();
    await v.shot('rules-no-variations');
    await v.link('Add variations').click();
    for (const [name, weight] of [
      ['red', '30'],
      ['blue', '70'],
    ]) {
      await v.button('Add variation').click();
      await v.page.getByRole('dialog').getByLabel('Weight', { exact: true }).fill(weight);
      await v.page.getByRole('dialog').getByLabel('Value', { exact: true }).fill(name);
      await v.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
      await v.page.getByText('Name is required').waitFor();
      await v.page.getByRole('dialog').getByLabel('Name', { exact: true }).fill(name);
      await v.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
      await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await v.page.getByRole('img', { name: 'Share of a split: red 30%, blue 70%' }).waitFor();
    await v.inspect();
    await v.button('Delete red').click();
    await v.inspect();
    await v.button('Delete').click();
    await v.page.getByRole('img', { name: 'Share of a split: blue 100%' }).waitFor();
  },

  'who closes a dialog with something typed in it is asked first': async (come) => {
    const v = await come();
    await open(v, { key: 'color', type: 'string' });
    const asked = v.heading('Close without saving?');
    const dialog = (name) => v.page.getByRole('dialog', { name, exact: true });
    await v.button('Add variation').click();
    await dialog('New variation').waitFor();
    await v.page.keyboard.press('Escape');
    await dialog('New variation').waitFor({ state: 'detached' });

    await v.button('Add variation').click();
    await dialog('New variation').getByLabel('Name', { exact: true }).fill('red');
    await v.page.keyboard.press('Escape');
    await asked.waitFor();
    await v.inspect();
    await v.shot('unsaved-dialog');
    await v.page.keyboard.press('Escape');
    await asked.waitFor({ state: 'detached' });
    if ((await dialog('New variation').getByLabel('Name', { exact: true }).inputValue()) !== 'red') {
      throw new Error('what was typed is lost');
    }
    await dialog('New variation').getByRole('button', { name: 'Close', exact: true }).click();
    await asked.waitFor();
    await v.button('Close without saving').click();
    await dialog('New variation').waitFor({ state: 'detached' });
    if (await v.page.getByRole('dialog').count()) throw new Error('a dialog is still open');

    // Forms of a page ask too, but not about what was sent.
    await v.page.getByRole('navigation').getByRole('link', { name: 'Projects', exact: true }).click();
    await v.button('New project').click();
    await dialog('New project').getByLabel('Name', { exact: true }).fill('Shop');
    await v.page.keyboard.press('Escape');
    await asked.waitFor();
    await v.button('Stay').click();
    await dialog('New project').getByRole('button', { name: 'Create', exact: true }).click();
    await v.link('Shop').waitFor();
    await dialog('New project').waitFor({ state: 'detached' });

    // Back closes the dialog of a new flag, and then returns to the page before.
    await v.page.getByRole('navigation').getByRole('link', { name: 'Flags', exact: true }).click();
    await v.button('New flag').click();
    await dialog('New flag').getByLabel('Key', { exact: true }).fill('typed');
    await v.page.goBack();
    await v.heading('Leave without saving?').waitFor();
    await v.button('Stay').click();
    await v.heading('Leave without saving?').waitFor({ state: 'detached' });
    if ((await dialog('New flag').getByLabel('Key', { exact: true }).inputValue()) !== 'typed') {
      throw new Error('what was typed is lost by going back');
    }
    await v.page.goBack();
    await v.button('Leave the page').click();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.heading('Flags').waitFor();
  },

  'who changes the same as somebody else chooses whose is to stand': async (come) => {
    const v = await come({ refused: [404, 412, 422] }); // 422: a rule is tried just after another person removed its variation
    // The page receives no events, since another story covers notices before a save.
    await v.page.route('**/api/v1/flags/stream', (route) => route.fulfill({ status: 404 }));
    await open(v, { key: 'shared', type: 'boolean' });
    await v.field('Name').fill('Mine');
    await v.call('PATCH', '/api/v1/flags/shared', { name: 'Theirs' });
    await v.button('Save').click();
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.page.getByRole('alert').getByText('Theirs', { exact: true }).waitFor();
    await v.inspect();
    await v.button('Keep mine').click();
    await v.button('Save').click();
    await v.until('mine stands', async () => (await v.call('GET', '/api/v1/flags/shared')).name === 'Mine');
    await v.button('Save').waitFor({ state: 'detached' });
    // Changes of other fields by other people do not interfere.
    await v.field('Name').fill('Mine again');
    await v.call('PATCH', '/api/v1/flags/shared', { description: 'Theirs' });
    await v.button('Save').click();
    await v.until('both stand', async () => (await v.call('GET', '/api/v1/flags/shared')).name === 'Mine again');
    await v.button('Save').waitFor({ state: 'detached' });
    // Changes by other people during a save are reported too, if the person has typed more.
    await v.page.route('**/api/v1/flags/shared', async (route) => {
      if (route.request().method() !== 'PATCH') return route.fallback();
      const response = await route.fetch();
      await v.field('Name').fill('Never mind');
      await v.call('PATCH', '/api/v1/flags/shared', { name: 'Theirs at last' });
      return route.fulfill({ response });
    });
    await v.field('Name').fill('Mine once more');
    await v.button('Save').click();
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.button('Take theirs').click();
    await v.until('theirs is shown', async () => (await v.field('Name').inputValue()) === 'Theirs at last');
    await v.page.unroute('**/api/v1/flags/shared');
    // A rule that another person has deleted exists again.
    const rule = { name: 'Staff', conditions: [], serve: { value: true } };
    await v.call('PUT', '/api/v1/flags/shared/rules', { rules: [rule] });
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Edit rule Staff').click();
    await v.page.getByRole('tabpanel').getByLabel('Name', { exact: true }).fill('All staff');
    await v.call('PUT', '/api/v1/flags/shared/rules', { rules: [] });
    await v.button('Save').click();
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.inspect();
    await v.shot('flag-meanwhile');
    await v.button('Keep mine').click();
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    const { rules } = await v.call('GET', '/api/v1/flags/shared/rules');
    if (rules[0]?.name !== 'All staff') throw new Error(JSON.stringify(rules));
  },

  'who leaves a flag that is not saved is asked first': async (come) => {
    const v = await come();
    await open(v, { key: 'unsaved', type: 'boolean' });
    await v.page.getByRole('navigation').getByRole('link', { name: 'Flags', exact: true }).click();
    const overview = () => v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.link('unsaved').click();
    await overview();
    const asked = v.heading('Leave without saving?');
    const stay = async () => {
      await v.button('Stay').click();
      await asked.waitFor({ state: 'detached' });
      if (!v.page.url().endsWith('/production/flags/unsaved?tab=overview'))
        throw new Error(`it is left for ${v.page.url()}`);
      if ((await v.field('Name').inputValue()) !== 'Mine') throw new Error('what was typed is lost');
    };
    await v.field('Name').fill('Mine');
    await v.page.getByRole('tab', { name: 'History' }).click();
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click();
    await asked.waitFor();
    await v.inspect();
    await stay();
    await v.page.getByRole('combobox', { name: 'Environment' }).click();
    await v.page.getByRole('option', { name: 'development' }).click();
    await asked.waitFor();
    await stay();
    await v.until(
      'the switcher says where one is',
      async () => (await v.page.getByRole('combobox', { name: 'Environment' }).inputValue()) === 'production',
    );
    for (let i = 0; i < 4; i++) await v.page.goBack(); // from a part of the page to another
    await asked.waitFor();
    await v.shot('flag-leave');
    await v.page.getByRole('dialog').waitFor();
    await v.button('Leave the page').click();
    await v.heading('Flags').waitFor();
    await v.link('unsaved').click();
    await overview();
    await v.until('it is as it was', async () => (await v.field('Name').inputValue()) === 'unsaved');
    await v.page.goBack();
    await v.page.goBack();
    await v.heading('Flags').waitFor();

    // A person who signs out is asked once.
    await v.link('unsaved').click();
    await overview();
    await v.field('Name').fill('Mine');
    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await v.button('Leave the page').click();
    await v.page.waitForURL('**/app/sign-in');
    await v.fillSignIn();
    await v.heading('Flags').waitFor();
    if (await v.page.getByRole('dialog').count()) throw new Error('who has signed out is asked again');
  },

  'rules are made, ordered, rolled out and tried, and the past is looked at and brought back': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'rollout', type: 'string', defaultValue: 'off' });
    for (const name of ['old', 'new']) {
      await v.call('POST', '/api/v1/flags/rollout/variations', { name, value: name });
    }
    await v.call('POST', '/api/v1/flags/rollout/enable');
    await v.page.reload();
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Add rule').click();
    await v.field('Attribute').fill('plan');
    await v.field('Values').fill('pro');
    await v.field('Values').press('Enter');
    await v.field('Values').fill('team');
    await v.field('Serve').first().selectOption('new');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    await v.button('Add attribute').click();
    await v.field('Attribute name').fill('plan');
    await v.field('Value of plan').fill('team');
    await v.page.getByText('A rule matched').waitFor();
    await v.inspect();

    // A second rule, by keyboard: it is invalid at first, then it moves before the other.
    await v.button('Add rule').press('Enter');
    await v.field('Name').fill('Everyone a bit');
    await v.field('Operator').selectOption('matches');
    await v.field('Attribute').fill('email');
    await v.field('Values').fill('(');
    await v.field('Values').press('Enter');
    await v.field('Serve').first().selectOption('rollout');
    await v.page.getByRole('slider', { name: 'Between old and new' }).press('ArrowLeft');
    await v.page.getByText('99%', { exact: true }).waitFor();
    await v.field('Weight of new').fill('99');
    await v.page.getByText('Sum 100').waitFor();
    await v.button('Save').click();
    await v.page.getByText('Values must be a regular expression').waitFor();
    await v.inspect();
    await v.shot('flag-rules');
    if (await v.page.getByText('Rules[1]').count())
      throw new Error('it is told twice, once by a name that no field has');
    await v.button('Remove (').click();
    // A pasted list adds its numbers, and clearing a text does not clear values.
    await v.field('Operator').selectOption('gt');
    const values = v.field('Values');
    await values.evaluate((field) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData('text', 'id\n1\n2');
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    });
    await v.button('Remove 2').waitFor();
    await v.button('Remove 1').waitFor();
    await v.page.getByText('Values must be a number.').waitFor();
    if ((await values.inputValue()) !== 'id') throw new Error('what is no number is lost');
    await values.focus();
    for (let i = 0; i < 4; i++) await v.page.keyboard.down('Backspace');
    await v.page.keyboard.up('Backspace');
    if ((await v.page.getByRole('button', { name: /^Remove .$/ }).count()) !== 2) throw new Error('values are cleared');
    await v.button('Remove 2').click();
    await v.button('Remove 1').click();
    await v.field('Operator').selectOption('matches');
    await v.field('Values').fill('@example\\.com$');
    await v.button('Move Everyone a bit up').press('Enter');
    await v.page.getByText('Everyone a bit is number 1 of 2 now').waitFor({ state: 'attached' });
    await v.field('Reason').fill('half of them first');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    const { rules } = await v.call('GET', '/api/v1/flags/rollout/rules');
    const shown = JSON.stringify(
      rules.map((r) => [r.name, r.conditions[0].values, r.serve.rollout?.map((s) => s.weight)]),
    );
    if (shown !== '[["Everyone a bit",["@example\\\\.com$"],[1,99]],["",["pro","team"],null]]') throw new Error(shown);

    // It is dragged back. A moving page may drop it: it is dragged again then.
    const carried = async () =>
      (await v.page.locator('article h3').allTextContents())[0] === 'plan is one of pro, team';
    await v.until('it is carried', async () => {
      const handle = await v.button('Drag Everyone a bit').boundingBox();
      const below = await v.button('Drag plan is one of pro, team').boundingBox();
      await v.page.mouse.move(handle.x + 8, handle.y + 8);
      await v.page.mouse.down();
      await v.page.mouse.move(handle.x + 8, handle.y + 20, { steps: 3 });
      for (let i = 0; i < 100 && !(await carried()); i++) {
        await v.page.mouse.move(below.x + 8, below.y + 8 + (i % 5));
      }
      await v.page.mouse.up();
      return carried();
    });
    await v.page.getByText('Order of the rules').waitFor();
    await v.button('Discard').click();
    await v.page.getByText('Order of the rules').waitFor({ state: 'detached' });

    await v.page.getByRole('tab', { name: 'History' }).click();
    await v.page.getByText('half of them first').waitFor();
    await v.inspect();
    const slider = v.page.getByRole('slider', { name: 'Version' });
    await slider.press('Home');
    await v.heading('The flag at version 1').waitFor();
    await v.page.getByText('The flag is off', { exact: true }).waitFor();
    await v.page
      .getByRole('tabpanel', { name: 'History' })
      .locator('dt:text-is("Permanent") + dd:text-is("No")')
      .waitFor();
    for (let i = 0; i < 4; i++) await slider.press('ArrowRight');
    await v.heading('The flag at version 5').waitFor();
    await v.page.getByRole('tabpanel', { name: 'History' }).getByText('A rule matched').waitFor();
    await v.inspect();
    await v.shot('flag-time');
    await v.link('Show version 3').click();
    await v.page.getByText('What has changed since then').waitFor();
    await v.inspect();
    await v.shot('flag-past');
    // Changes since then are shown from then to now, and those of a revert from now to then.
    const said = async (where) => {
      await where.locator('ins').first().waitFor();
      return [await where.locator('del').allTextContents(), await where.locator('ins').allTextContents()];
    };
    const panel = v.page.locator('section', { has: v.heading('The flag at version 3') }).last();
    const [before, after] = await said(panel);
    await v.button('Revert').click();
    const [gone, back] = await said(v.page.getByRole('dialog'));
    if (!after.length || gone.join('\n') !== after.join('\n') || back.join('\n') !== before.join('\n'))
      throw new Error(`since: -${before} +${after}, by the revert: -${gone} +${back}`);
    await v.page.getByRole('dialog').getByLabel('Reason').fill('not yet');
    await v.page.getByRole('dialog').getByRole('button', { name: 'Revert' }).click();
    await v.page.getByText('not yet').first().waitFor();
    await v.switch('rollout', { checked: false }).waitFor();
    const then = await v.call('GET', '/api/v1/flags/rollout/rules');
    if (then.rules.length) throw new Error('the rules are still there');
  },

  'what a user would get of rules that are not saved is told beside them': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'draft', type: 'string', defaultValue: 'none' });
    for (const name of ['old', 'new']) {
      await v.call('POST', '/api/v1/flags/draft/variations', { name, value: name });
    }
    await v.call('POST', '/api/v1/flags/draft/enable');
    await v.page.reload();
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.page.getByText('No rule matched').waitFor();
    await v.button('Add attribute').click();
    await v.field('Attribute name').fill('plan');
    await v.field('Value of plan').fill('pro');
    await v.button('Add rule').click();
    await v.page.getByText('Complete the rules to see the answer.').waitFor();
    await v.field('Attribute').fill('plan');
    await v.field('Values').fill('pro');
    await v.field('Values').press('Enter');
    await v.field('Serve').first().selectOption('new');
    await v.page.getByText('Shows what your unsaved changes would serve.').waitFor();
    const got = v.page.getByText('They get');
    await got.getByText('A rule matched').waitFor();
    await got.getByText('new', { exact: true }).waitFor();
    await v.inspect();
    await v.shot('flag-rules-unsaved');
    await v.field('Value of plan').fill('free');
    await got.getByText('No rule matched').waitFor();
    await v.field('Value of plan').fill('pro');

    // A new rule draws its shares again, and invalid input can be corrected.
    await v.field('Serve').first().selectOption('rollout');
    await v.page.getByText(/^The shares of a new rule are drawn again/).waitFor();
    await v.field('Operator').selectOption('matches');
    await v.field('Values').fill('(');
    await v.field('Values').press('Enter');
    await v.page.getByText('These rules would be refused:').waitFor();
    await v.button('Remove (').click();
    await v.page.getByText('Shows what your unsaved changes would serve.').waitFor();
    const saved = await v.call('GET', '/api/v1/flags/draft/rules');
    if (saved.rules.length) throw new Error('something is saved');

    // Everyone else, too.
    await v.page.getByRole('button', { name: /^Delete rule / }).click();
    await v.field('Everyone else gets').selectOption('new');
    await got.getByText('new', { exact: true }).waitFor();
    await v.button('Discard').click();
    await v.page.getByText('Shows what the saved rules serve.').waitFor();
  },

  'rules that are saved while the fallthrough is refused are no conflict with oneself': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'half', type: 'boolean' });
    let refusals = 0;
    await v.page.route('**/flags/half/fallthrough', (route) =>
      refusals++
        ? route.continue()
        : route.fulfill({
            status: 422,
            contentType: 'application/problem+json',
            body: JSON.stringify({ title: 'Unprocessable Entity', status: 422, errors: { serve: 'must not be this' } }),
          }),
    );
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Add rule').click();
    await v.field('Attribute').fill('plan');
    await v.field('Values').fill('pro');
    await v.field('Values').press('Enter');
    await v.field('Everyone else gets').selectOption('value');
    await v.button('Save').click();
    await v.page.getByText('must not be this').waitFor();
    if (await v.button('Keep mine').count()) throw new Error('it is told as a conflict');
    const { rules } = await v.call('GET', '/api/v1/flags/half/rules');
    if (rules.length !== 1) throw new Error(`${rules.length} rules are saved`);
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    const saved = await v.call('GET', '/api/v1/flags/half/rules');
    if (saved.rules[0].id !== rules[0].id || !saved.fallthrough) throw new Error(`saved is ${JSON.stringify(saved)}`);
  },

  'a rollout keeps its order, whatever is saved beside it, and variations that come meanwhile change no rule': async (
    come,
  ) => {
    const v = await come();
    await open(v, { key: 'split', type: 'string' });
    const ids = [];
    for (const name of ['a', 'b', 'c', 'd']) {
      ids.push((await v.call('POST', '/api/v1/flags/split/variations', { name, value: name })).id);
    }
    const [a, b, c, d] = ids;
    const share = (variationId, weight) => ({ variationId, weight });
    const rollout = [share(c, 0), share(b, 20), share(a, 80)];
    const serves = async () => {
      const { rules } = await v.call('GET', '/api/v1/flags/split/rules');
      return JSON.stringify(rules.map(({ name, serve }) => [name, serve.rollout ?? serve.value ?? serve.variationId]));
    };
    const stands = async (...wanted) => {
      await v.button('Save').click();
      await v.button('Save').waitFor({ state: 'detached' });
      const now = await serves();
      if (now !== JSON.stringify(wanted)) throw new Error(now);
    };
    await v.call('PUT', '/api/v1/flags/split/rules', {
      rules: [
        { name: 'Some', conditions: [], serve: { rollout } },
        { name: 'Others', conditions: [], serve: { value: 'x' } },
      ],
    });
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Edit rule Others').click();
    const name = v.page.getByRole('tabpanel').getByLabel('Name', { exact: true });
    await name.fill('The others');
    await stands(['Some', rollout], ['The others', 'x']);
    await v.button('Close rule The others').click();

    // Its lines are in its order too. A new share comes last, and a removed one disappears.
    await v.button('Edit rule Some').click();
    const weights = () =>
      v.page.getByLabel(/^Weight of /).evaluateAll((fields) => fields.map((field) => field.value).join());
    await v.until('the shares are as they were made', async () => (await weights()) === '0,20,80,0');
    await v.field('Weight of d').fill('5');
    await v.field('Weight of b').fill('0');
    if ((await weights()) !== '0,0,80,5') throw new Error(await weights());
    await stands(['Some', [share(c, 0), share(a, 80), share(d, 5)]], ['The others', 'x']);
    await v.button('Close rule Some').click();

    await v.button('Edit rule The others').click();
    await name.fill('All others');
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.button('Add variation').click();
    await v.page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('e');
    await v.page.getByRole('dialog').getByLabel('Value', { exact: true }).fill('e');
    await v.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.field('Serve').selectOption('rollout');
    await v.field('Weight of e').waitFor();
    if (await v.heading('Another person has changed the same meanwhile').count()) throw new Error('it is in conflict');
    if ((await weights()) !== '100,0,0,0,0') throw new Error(await weights());
    await v.field('Serve').selectOption('a');
    await stands(['Some', [share(c, 0), share(a, 80), share(d, 5)]], ['All others', a]);
  },

  'a rule that is older than all variations of its flag is rolled out between them': async (come) => {
    const v = await come({ refused: [412] }); // the variations may appear before the flag's new version: then it is saved again
    await open(v, { key: 'early', type: 'string' });
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Add rule').click();
    await v.field('Name').fill('Some');
    await v.button('Delete condition').click();
    for (const name of ['old', 'new']) {
      await v.call('POST', '/api/v1/flags/early/variations', { name, value: name });
    }
    await v.page.locator('option[value=rollout]').first().waitFor({ state: 'attached' });
    await v.field('Serve').selectOption('rollout');
    await v.field('Weight of new').fill('300');
    await v.page.getByText('75%', { exact: true }).waitFor();
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    const { rules } = await v.call('GET', '/api/v1/flags/early/rules');
    const shown = JSON.stringify(rules.map(({ serve }) => serve.rollout?.map(({ weight }) => weight)));
    if (shown !== '[[100,300]]') throw new Error(shown);
  },

  'weights that nobody touches stay as they are, and an edit of one changes that one alone': async (come) => {
    const v = await come();
    await open(v, { key: 'shares', type: 'string' });
    const ids = [];
    for (const name of 'abcdefg') {
      ids.push((await v.call('POST', '/api/v1/flags/shares/variations', { name, value: name })).id);
    }
    const sets = { thirds: [1, 1, 1], half: [1, 2], exact: [33.333, 66.667], sevens: [1, 1, 1, 1, 1, 1, 1] };
    const rolloutOf = (weights) => weights.map((weight, i) => ({ variationId: ids[i], weight }));
    const rules = Object.entries(sets).map(([name, weights]) => ({
      name,
      conditions: [{ attribute: ' plan', op: 'in', values: [name], negate: false }],
      serve: { rollout: rolloutOf(weights), bucketBy: 'team ' },
    }));
    await v.call('PUT', '/api/v1/flags/shares/rules', { rules });
    await v.call('PUT', '/api/v1/flags/shares/fallthrough', { serve: { rollout: rolloutOf([0, 1, 2]) } });
    const saved = async () => {
      const now = await v.call('GET', '/api/v1/flags/shares/rules');
      return JSON.stringify(
        [...now.rules, now.fallthrough && { name: 'else', serve: now.fallthrough }].map(({ name, serve }) => [
          name,
          serve.rollout.map(({ weight }) => weight).join(),
        ]),
      );
    };
    const stand = async (wanted) => {
      const now = await saved();
      const all = JSON.stringify(
        Object.entries({ ...sets, else: [0, 1, 2], ...wanted }).map(([n, w]) => [n, w.join()]),
      );
      if (now !== all) throw new Error(`${now}\nwant ${all}`);
    };
    const fields = () =>
      v.page.getByLabel(/^Weight of /).evaluateAll((found) => found.map(({ value }) => value).join());
    const save = async () => {
      await v.button('Save').click();
      await v.button('Save').waitFor({ state: 'detached' });
    };
    await v.page.reload();
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    for (const name of Object.keys(sets)) await v.button(`Edit rule ${name}`).click();
    const sliders = v.page.getByRole('slider');
    await v.until('all borders are there', async () => (await sliders.count()) === 6 * 5); // every variation has a line
    await v.page.getByText('Sum 100', { exact: true }).waitFor();
    if (await v.button('Save').count()) throw new Error(`what is shown is already a change: ${await fields()}`);

    // Other saved changes do not affect them, nor does one weight the others.
    const first = v.page.getByRole('article').filter({ hasText: 'thirds' });
    await first.getByLabel('Weight of b', { exact: true }).fill('2.5');
    await v.page.getByText('Sum 4.5', { exact: true }).waitFor();
    await save();
    await stand({ thirds: [1, 2.5, 1] });
    const { rules: now } = await v.call('GET', '/api/v1/flags/shares/rules');
    for (const { name, conditions, serve } of now) {
      if (conditions[0].attribute !== ' plan' || serve.bucketBy !== 'team ')
        throw new Error(`${name} asks something else`);
    }

    // A border moves the two shares beside it, by readable steps, and back.
    const second = v.page.getByRole('article').filter({ hasText: 'half' });
    const border = second.getByRole('slider', { name: 'Between a and b' });
    await border.press('ArrowRight');
    await save();
    await stand({ thirds: [1, 2.5, 1], half: [1.01, 1.99] });
    await border.press('ArrowLeft');
    await save();
    await stand({ thirds: [1, 2.5, 1] });

    // A share of 0 is a share too.
    await v.field('Weight of c').last().fill('3');
    await save();
    await stand({ thirds: [1, 2.5, 1], else: [0, 1, 3] });
  },

  'a border of a rollout stays between its neighbours': async (come) => {
    const v = await come();
    await open(v, { key: 'borders', type: 'string' });
    const rollout = [];
    for (const [name, weight] of Object.entries({ a: 30, b: 30, c: 40 })) {
      const { id } = await v.call('POST', '/api/v1/flags/borders/variations', { name, value: name });
      rollout.push({ variationId: id, weight });
    }
    await v.call('PUT', '/api/v1/flags/borders/rules', {
      rules: [{ name: 'Some', conditions: [], serve: { rollout } }],
    });
    await v.page.reload();
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Edit rule Some').click();
    const weights = () =>
      v.page.getByLabel(/^Weight of /).evaluateAll((fields) => fields.map((field) => field.value).join());
    const press = async (slider, key, wanted) => {
      await v.page.getByRole('slider', { name: slider }).press(key);
      await v.until(`${key} ${slider} is heard`, async () => (await weights()) !== before);
      if ((await weights()) !== wanted) throw new Error(`${key}: ${await weights()}`);
      before = wanted;
    };
    let before = '30,30,40';
    await v.until('the shares are as they were made', async () => (await weights()) === before);
    await press('Between a and b', 'End', '60,0,40');
    await press('Between a and b', 'ArrowLeft', '59,1,40');
    await press('Between b and c', 'Home', '59,0,41');
    await press('Between b and c', 'End', '59,41,0');
  },

  'what is wrong with a rule is told at no other once they are moved, and who leaves with the tab is asked': async (
    come,
  ) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'order', type: 'boolean' });
    await v.call('PUT', '/api/v1/flags/order/rules', {
      rules: [{ name: 'First', conditions: [], serve: { value: true } }],
    });
    await v.page.reload();
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Edit rule First').click();
    await v.button('Add rule').click();
    await v.field('Name').last().fill('Second');
    await v.field('Attribute').fill('email');
    await v.field('Operator').selectOption('matches');
    await v.field('Values').fill('(');
    await v.field('Values').press('Enter');
    await v.button('Save').click();
    const wrong = v.page.getByText('Values must be a regular expression');
    await wrong.waitFor();
    await v.button('Move Second up').click();
    await wrong.waitFor({ state: 'detached' });
    await v.button('Move Second down').click();
    await wrong.waitFor();
    const asked = [];
    v.page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.accept();
    });
    await v.page.reload();
    await v.button('Edit rule First').waitFor();
    await v.link('Flags').first().click();
    await v.button('New flag').click();
    await v.field('Key').fill('typed');
    await v.page.reload();
    await v.field('Key').waitFor();
    if (String(asked) !== 'beforeunload,beforeunload') throw new Error(`who leaves is asked: ${asked}`);
  },
};
