export default {
  'an admin sets the rules for flags, and forms ask for what they demand': async (come) => {
    const v = await come({ refused: [422] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'old', type: 'boolean' });
    await v.page.getByRole('navigation').getByRole('link', { name: 'Flag rules', exact: true }).click();
    await v.heading('Flag rules').waitFor();
    await v.field('Pattern').fill('[a-z]+-[0-9]+');
    await v.field('Example').fill('shop');
    await v.field('Hint').fill('team and ticket');
    await v.page.getByRole('checkbox', { name: 'development' }).focus();
    await v.page.keyboard.press('Space');
    await v.page.getByRole('checkbox', { name: 'New flags need an owner' }).check();
    await v.button('Save').click();
    await v.page.getByText('Example must match the pattern as a whole.').waitFor();
    await v.inspect();
    await v.field('Example').fill('shop-12');
    await v.button('Save').click();
    await v.page.getByText('The flag rules are saved.').waitFor();
    await v.until('there is nothing to save', () => v.button('Save').isDisabled());
    await v.shot('flag-rules-page');

    // A new flag has a key of the pattern, and an owner.
    await v.open(`/t/${tenant}/development/flags?new=flag`);
    await v.page.getByText('Its name in code, such as shop-12. It never changes.').waitFor();
    await v.field('Key').fill('cart');
    await v.page.getByText('Keys here look like shop-12: team and ticket').waitFor();
    await v.button('Create').click();
    await v.page.getByText(/^Key must match the tenant's pattern/).waitFor();
    await v.page.getByText("Owner is required by the tenant's rules for flags.").waitFor();
    await v.inspect();
    await v.field('Key').fill('cart-7');
    await v.field('Owner').selectOption({ label: v.email });
    await v.button('Create').click();
    await v.heading('cart-7').waitFor();

    // Switching it on needs a reason, switching it off does not.
    const reason = v.page.getByRole('dialog').getByLabel('Reason', { exact: true });
    await v.switch('cart-7').click();
    await v.page.getByText('Required for changes in development: why?').waitFor();
    await v.button('Switch on').click();
    await v.page.getByText("A reason is required by the tenant's rules for changes of flags in development.").waitFor();
    await v.inspect();
    await reason.fill('launch');
    await v.button('Switch on').click();
    await v.page.getByRole('dialog').waitFor({ state: 'detached' });
    await v.switch('cart-7', { checked: true }).waitFor();
    const [entry] = await v.call('GET', '/api/v1/flags/cart-7/history');
    if (entry.reason !== 'launch') throw new Error(`the reason is ${entry.reason}`);

    // So do changes of the whole flag, from another environment too.
    const hint = 'Required for changes in development: why?';
    await v.open(`/t/${tenant}/production/flags/cart-7?tab=overview`);
    await v.field('Name').fill('Cart');
    await v.page.getByPlaceholder(hint).waitFor();
    await v.button('Discard').click();
    await v.open(`/t/${tenant}/production/flags`);
    await v.field('Select cart-7').check();
    await v.button('Archive').click();
    await v.page.getByText(hint).waitFor();
    await v.button('Cancel').click();
    await v.open(`/t/${tenant}/development/flags/cart-7?tab=overview`);
    await v.field('Name').fill('Cart');
    await v.page.getByPlaceholder(hint).waitFor();
    await v.button('Save').click();
    await v.page.getByText("A reason is required by the tenant's rules for changes of flags in development.").waitFor();
    await v.field('Reason').fill('typo');
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    await v.switch('cart-7').click();
    await v.switch('cart-7', { checked: false }).waitFor();
    await v.until(
      'it is off',
      async () => !(await v.call('GET', '/api/v1/flags/cart-7', undefined, undefined, 'development')).enabled,
    );
  },
};
