// What flags require of each other: prerequisites, dependents, and what follows a switch.
const dialog = (v) => v.page.getByRole('dialog');
const tab = (v, name) => v.page.getByRole('tab', { name, exact: true });
const text = (v, what) => v.page.getByText(what).filter({ visible: true }).first();
const box = (v, name) => v.page.getByRole('checkbox', { name, exact: true });

async function save(v) {
  await v.button('Save').click();
  await v.button('Save').waitFor({ state: 'detached' });
}

/** Creates flags that are on in production. */
async function flagsOn(v, ...flags) {
  for (const flag of flags) {
    await v.call('POST', '/api/v1/flags', { type: 'boolean', ...flag });
    await v.call('POST', `/api/v1/flags/${flag.key}/enable`);
  }
}

/** Has a flag require others, beside the page. */
const require = (v, key, prerequisites, environment) =>
  v.call('PUT', `/api/v1/flags/${key}/prerequisites`, { prerequisites }, undefined, environment);

const dependencies = (v, key) => v.open(`/t/${v.place.tenant}/production/flags/${key}?tab=dependencies`);

export default {
  'a flag requires another, and follows it': async (come) => {
    const v = await come({ refused: [404, 409] });
    await v.signUp();
    await flagsOn(v, { key: 'payments', name: 'Pay by card' }, { key: 'checkout' });
    await v.open(`/t/${v.place.tenant}/production/flags/checkout`);
    await tab(v, 'Dependencies').click();
    await v.page.getByText('It requires no other flag').waitFor();
    await v.page.getByText('No flag requires it').waitFor();
    await v.inspect();
    await v.shot('dependencies-none');

    // A flag is found by its key, or a part of key or name. All of it by keyboard.
    const add = v.field('Add a flag');
    for (const [typed, refusal] of [
      ['nobody', 'There is no such flag.'],
      ['checkout', 'A flag cannot require itself.'],
    ]) {
      await add.fill(typed);
      await add.press('Enter');
      await v.page.getByText(refusal).waitFor();
    }
    await v.inspect();
    await add.fill('card');
    await add.press('Enter');
    await v.button('Remove payments').waitFor();
    if (!(await box(v, 'true').isChecked())) throw new Error('true is not required of a boolean flag');
    await add.fill('payments');
    await add.press('Enter');
    await v.page.getByText('It is required already.').waitFor();
    await add.fill('');
    await text(v, 'payments is on and serves true').waitFor();
    await v.inspect();
    await v.shot('dependencies-draft');
    await v.field('Reason').fill('nothing is sold unpaid');
    await save(v);
    await text(v, 'must be on and serve true').waitFor();
    await v.inspect();
    await v.shot('dependencies-saved');

    // The other flag knows it, and is neither deleted nor archived.
    await v.link('payments').first().click();
    await v.heading('payments').waitFor();
    await text(v, 'requires it to be on and serve true').waitFor();
    await v.inspect();
    await v.shot('dependencies-required');
    await tab(v, 'Overview').click();
    await text(v, 'Required by 1 flag in production.').waitFor();
    await v.page.getByRole('button', { name: 'Delete the flag', disabled: true }).waitFor();
    await text(v, 'It cannot be archived: other flags require it.').waitFor();
    await v.inspect();
    await v.field('Status').selectOption('inactive');
    await text(v, '1 flag follows: it requires this one to be on.').waitFor();
    await v.button('Discard').click();

    // Who switches it off reads what follows.
    await v.switch('payments').click();
    await dialog(v).getByText('1 flag follows: it requires this one to be on.').waitFor();
    await dialog(v).getByRole('link', { name: 'checkout', exact: true }).waitFor();
    await v.inspect();
    await v.shot('dependencies-switch-off');
    await dialog(v).getByRole('button', { name: 'Switch off', exact: true }).click();
    await dialog(v).waitFor({ state: 'detached' });
    await tab(v, 'Dependencies').click();
    await text(v, 'off: requires payments to be on').waitFor();

    // The other one is off, and its explanation unfolds to the reason.
    await v.link('checkout').first().click();
    await v.heading('checkout').waitFor();
    await text(v, 'off: requires payments to be on').waitFor();
    await tab(v, 'Rules').click();
    await text(v, 'Off: it requires payments').waitFor();
    await text(v, 'is not met').waitFor();
    await v.page.getByText('How payments was decided').press('Enter');
    await text(v, 'Environment').waitFor();
    await v.inspect();
    await v.shot('dependencies-explained');

    // History.
    await tab(v, 'History').click();
    await text(v, 'Prerequisites changed').waitFor();
    await text(v, 'nothing is sold unpaid').waitFor();
    await text(v, 'payments is on and serves true').waitFor();
    await v.link('Show version 3').click();
    await v.heading('The flag at version 3').waitFor();
    await text(v, 'Requires: payments is on and serves true').waitFor();
    await v.inspect();
    await v.button('Back to now').click();
    await box(v, 'With changes of the segments and flags that it depended on').check();
    await v.link('Flag payments').first().waitFor();
    await v.inspect();
    await v.shot('dependencies-history');
    await v.link('Flag payments').first().click();
    await v.heading('payments').waitFor();
    await text(v, 'Switched off').waitFor();

    // The list says who requires whom.
    await v.open(`/t/${v.place.tenant}/production/flags`);
    await v.link('requires 1').waitFor();
    await v.inspect();
    await v.shot('dependencies-list');
    await v.link('required by 1').click();
    await text(v, 'requires it to be on and serve true').waitFor();

    // The playground says it, too.
    await v.open(`/t/${v.place.tenant}/production/playground?find=checkout`);
    await text(v, 'Off: it requires payments').waitFor();
  },

  'a switch asks where others follow, and only there': async (come) => {
    const v = await come();
    await v.signUp();
    const { tenant } = v.place;
    await flagsOn(v, { key: 'payments' }, { key: 'checkout' }, { key: 'alone' });
    for (const key of ['payments', 'checkout', 'alone'])
      await v.call('POST', `/api/v1/flags/${key}/enable`, undefined, undefined, 'development');
    await require(v, 'checkout', [{ flagKey: 'payments', serves: [{ value: true }] }], 'development');
    await v.open(`/t/${tenant}/development/flags`);
    await v.switch('alone').click();
    await v.switch('alone', { checked: false }).waitFor();
    await v.switch('payments').click();
    await dialog(v).getByText('1 flag follows: it requires this one to be on.').waitFor();
    await v.inspect();
    await dialog(v).getByRole('button', { name: 'Switch off', exact: true }).click();
    await v.switch('payments', { checked: false }).waitFor();
    // So do several at once.
    await v.switch('payments').click();
    await v.switch('payments', { checked: true }).waitFor();
    for (const key of ['payments', 'alone']) await box(v, `Select ${key}`).check();
    await v.button('Switch off').click();
    await dialog(v).getByText('1 flag follows: it requires one of these to be on.').waitFor();
    await dialog(v).getByRole('link', { name: 'checkout', exact: true }).waitFor();
    await v.inspect();
    await v.button('Cancel').click();
    await v.switch('payments').click();
    await dialog(v).getByRole('button', { name: 'Switch off', exact: true }).click();
    await v.switch('payments', { checked: false }).waitFor();
    // It is switched off although it is not known who follows.
    await v.switch('payments').click();
    await v.switch('payments', { checked: true }).waitFor();
    await v.page.route('**/api/v1/flags/*/dependents', (route) => route.abort());
    await v.switch('checkout').click();
    await v.switch('checkout', { checked: false }).waitFor();
    v.wrong = v.wrong.filter((what) => !what.includes('dependents'));
  },

  'prerequisites of several kinds, and what others change meanwhile': async (come) => {
    const v = await come({ refused: [409, 412, 422] });
    await v.signUp();
    await flagsOn(v, { key: 'theme', type: 'string' }, { key: 'maintenance' }, { key: 'shop' });
    for (const [i, name] of ['dark', 'light'].entries())
      await v.call('POST', '/api/v1/flags/theme/variations', { name, value: name, weight: 1 - i });
    await require(v, 'theme', [{ flagKey: 'maintenance', off: true }]);
    await dependencies(v, 'shop');
    const add = v.field('Add a flag');
    for (const key of ['theme', 'maintenance']) {
      await add.fill(key);
      await v.button('Add').click();
      await v.button(`Remove ${key}`).waitFor();
    }
    await v.field('maintenance must be').selectOption('off');
    await v.button('Save').click();
    await v.page.getByRole('alert').first().waitFor(); // no value of theme is chosen
    await v.inspect();
    await box(v, 'dark').check();
    await v.field('Other values').fill('sepia');
    await v.field('Other values').press('Enter');
    await box(v, '"sepia"').waitFor();
    await text(v, 'theme is on and serves dark or "sepia"').waitFor();
    await v.inspect();
    await v.shot('dependencies-kinds');
    await save(v);
    await text(v, 'off: requires maintenance to be off').waitFor();
    await v.shot('dependencies-tree');

    // A circle is refused with its path.
    await dependencies(v, 'maintenance');
    await add.fill('shop');
    await add.press('Enter');
    await v.button('Save').click();
    await v.page
      .getByText(/maintenance → shop → /)
      .first()
      .waitFor();
    await v.inspect();
    await v.button('Discard').click();

    // Others make the same change, and another one.
    await dependencies(v, 'shop');
    await v.button('Remove theme').click();
    await require(v, 'shop', [{ flagKey: 'maintenance', off: true }]);
    await v.button('Save').waitFor({ state: 'detached' });
    await v.button('Remove maintenance').click();
    await require(v, 'shop', [{ flagKey: 'theme', serves: [{ value: 'dark' }] }]);
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.inspect();
    await v.button('Take theirs').click();
    await v.button('Remove theme').waitFor();

    // A variation that another flag names stays.
    const [dark] = await v.call('GET', '/api/v1/flags/theme/variations');
    await require(v, 'shop', [{ flagKey: 'theme', serves: [{ variationId: dark.id }] }]);
    await v.open(`/t/${v.place.tenant}/production/flags/theme?tab=overview`);
    await v.button('Delete dark').click();
    await dialog(v).getByText('flags require this one to serve it').first().waitFor();
    await dialog(v).getByRole('link', { name: 'shop', exact: true }).waitFor();
    await v.inspect();
    await v.button('Cancel').click();

    // What is served while it is off is a setting.
    await v.field('When off').selectOption('code');
    await text(v, 'so the default in the code decides').waitFor();
    await save(v);
    await tab(v, 'History').click();
    await text(v, 'Let the application’s code decide').waitFor();
  },

  'problems of prerequisites are shown': async (come) => {
    const v = await come({ refused: [404] });
    await v.signUp();
    await flagsOn(v, { key: 'cart' });
    // Only two nodes at once can make one.
    await v.page.route('**/api/v1/flags/cart', async (route) => {
      const response = await route.fetch();
      const problems = [{ code: 'prerequisite_missing', key: 'gone', environment: 'production' }];
      await route.fulfill({ response, json: { ...(await response.json()), problems } });
    });
    await dependencies(v, 'cart');
    await text(v, 'In production it requires the flag gone, which does not exist').waitFor();
    await v.inspect();
    await v.link('Flag gone').click();
    await v.page.getByText('There is no such flag').waitFor();
  },

  'dependencies fit a narrow window': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    await v.signUp();
    const keys = ['first', 'second', 'third', 'fourth'].map((name) => `${name}-of-the-flags-with-a-rather-long-key`);
    await flagsOn(v, ...keys.map((key) => ({ key })));
    for (const [i, key] of keys.slice(1).entries())
      await require(v, key, [{ flagKey: keys[i], serves: [{ value: true }, { value: false }] }]);
    await dependencies(v, keys[3]);
    await text(v, 'must be on and serve true or false').waitFor();
    await v.link(keys[0]).first().waitFor();
    await v.inspect();
    await v.shot('dependencies-narrow');
    await v.field('Add a flag').fill(keys[1]);
    await v.field('Add a flag').press('Enter');
    await v.button(`Remove ${keys[1]}`).waitFor();
    await v.inspect();
    await v.shot('dependencies-narrow-draft');
    await v.button('Discard').click();
    await dependencies(v, keys[0]);
    await v.link(keys[3]).waitFor();
    await v.inspect();
    await v.shot('dependencies-narrow-required');
  },
};
