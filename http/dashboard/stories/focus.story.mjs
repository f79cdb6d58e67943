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
};
