// Dialogs begin at their first field, and return to what opened them.
export default {
  'each dialog begins at its first field, and returns to what opened it': async (come) => {
    const v = await come();
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean' });
    await v.call('POST', '/api/v1/projects', { name: 'Shop' });
    const { tenant } = v.place;
    const opens = async (button, first, inside = v.page) => {
      const opener = inside.getByRole('button', { name: button, exact: true });
      await opener.focus();
      await v.page.keyboard.press('Enter');
      const dialog = v.page.getByRole('dialog');
      const wanted = dialog
        .getByLabel(first, { exact: true })
        .or(dialog.getByRole('button', { name: first, exact: true }))
        .first();
      await wanted.waitFor();
      const has = (it) => it.evaluate((node) => node === document.activeElement);
      await v.until(`${button} begins at ${first}`, () => has(wanted));
      await v.page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await v.until(`the focus is on ${button} again`, () => has(opener));
    };
    const pages = {
      flags: [['New flag', 'Name']],
      'flags/cart?tab=overview': [
        ['Add variation', 'Name'],
        ['Delete the flag', 'Type cart to confirm'],
      ],
      projects: [
        ['New project', 'Name'],
        ['Edit Shop', 'Name'],
        ['Delete Shop', 'Cancel'],
      ],
      environments: [
        ['Add environment', 'Name'],
        ['Delete development', 'Type development to confirm'],
      ],
      members: [['Add member', 'Email']],
      clients: [['New client', 'Name']],
      audit: [['Verify', 'Key that you saved']],
      profile: [['Sign out everywhere', 'Password']],
    };
    for (const [page, dialogs] of Object.entries(pages)) {
      await v.open(`/t/${tenant}/production/${page}`);
      for (const [button, first] of dialogs) await opens(button, first);
    }

    // A new rule has the focus, too.
    await v.open(`/t/${tenant}/production/flags/cart?tab=rules`);
    await v.button('Add rule').click();
    await v.focused('Name');
  },

  'the keyboard alone saves rules, changes flags in bulk and creates keys, and its focus is never lost': async (
    come,
  ) => {
    const v = await come();
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean' });
    for (const key of ['a', 'b']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
    const { tenant } = v.place;
    const dialog = v.page.getByRole('dialog');
    const press = (key) => v.page.keyboard.press(key);
    const has = (what, locator) =>
      v.until(`the focus is on ${what}`, () => locator.evaluate((node) => node === document.activeElement));

    // Saved rules have new fields: the focus goes to the page.
    await v.open(`/t/${tenant}/production/flags/cart?tab=rules`);
    await v.button('Target users').focus();
    await press('Enter');
    await v.focused('Targeting keys');
    await v.page.keyboard.type('user-42');
    await press('Enter');
    await v.field('Serve').focus();
    await v.page.keyboard.type('on');
    await v.field('Reason').focus();
    await v.page.keyboard.type('to try it');
    await press('Enter');
    await v.button('Save').waitFor({ state: 'detached' });
    await has('the page', v.page.locator('main'));

    // From a selected flag one key leads to the actions, past all other flags.
    await v.open(`/t/${tenant}/production/flags`);
    await v.field('Select a').focus();
    await press('Space');
    await v.button('Switch on').waitFor();
    await press('Tab');
    await has('the way to the actions', v.button('Go to the actions'));
    await v.inspect();
    await v.shot('focus-actions');
    await press('Enter');
    await has('the first action', v.button('Switch on'));

    // A version's link leads past all older ones, and the focus returns to it.
    for (let i = 0; i < 30; i++) await v.call('PATCH', '/api/v1/flags/cart', { description: `version ${i + 2}` });
    await v.open(`/t/${tenant}/production/flags/cart?tab=history`);
    await v.link('Show version 30').focus();
    await press('Enter');
    const then = v.page.getByRole('group', { name: 'The flag at version 30' });
    await has('the version', then);
    await v.button('Revert').waitFor();
    await press('Tab');
    await press('Tab');
    await has('the revert', v.button('Revert'));
    await v.inspect();
    await press('Shift+Tab');
    await press('Enter');
    await then.waitFor({ state: 'detached' });
    await has('the link of the version', v.link('Show version 30'));

    // A new key has the focus on its copying, and its dialog returns to what opened the one before.
    await v.open(`/t/${tenant}/production/flags/cart`);
    await v.button('Use in code').focus();
    await press('Enter');
    await v.focused('Language');
    await v.field('Name of the key').focus();
    await press('Enter');
    const key = dialog.getByRole('figure', { name: 'Key', exact: true });
    await has('the copying of the key', key.getByRole('button', { name: 'Copy' }));
    await v.open(`/t/${tenant}/production/keys`);
    await v.button('New key').focus();
    await press('Enter');
    await v.focused('Name');
    await v.page.keyboard.type('Shop');
    await press('Enter');
    await v.button('I have saved it').focus();
    await press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await has('New key', v.button('New key'));
  },
};
