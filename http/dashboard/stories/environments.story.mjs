const at = (tenant) => `/api/v1/tenants/${tenant}/environments`;

async function begin(v) {
  await v.signUp();
  const { tenant } = v.place;
  await v.call('POST', at(tenant), { environment: 'staging' });
  await v.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean' });
  return tenant;
}

const same = (what, got, want) => {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${got}, not ${want}`);
};

const table = (v) => v.page.getByRole('table', { name: 'Environments' });
const inFocus = (v, name) =>
  v.until(`the focus is on ${name}`, () => v.button(name).evaluate((button) => button === document.activeElement));
const saved = (v, tenant, name, holds) =>
  v.until(`${name} is saved`, async () => holds((await v.call('GET', `${at(tenant)}/settings`)).environments));

export default {
  'environments have one order and a color each, on all pages': async (come) => {
    const v = await come();
    const tenant = await begin(v);
    const want = ['staging', 'production', 'development'];
    await saved(v, tenant, 'a color each', (list) => new Set(list.map(({ color }) => color)).size === list.length);

    // By keyboard: the focus stays on the button, and goes to the other one at the end of the list.
    await v.open(`/t/${tenant}/production/environments`);
    await v.button('Move staging up').focus();
    await v.page.keyboard.press('Enter');
    await inFocus(v, 'Move staging up');
    await v.page.keyboard.press('Enter');
    await inFocus(v, 'Move staging down');
    await v.page.getByText('staging is now number 1 of 3.').waitFor();
    await saved(v, tenant, 'the order', (list) => list.map(({ name }) => name).join() === want.join());
    await v.field('Color of staging').fill('#0b7285');
    await saved(v, tenant, 'the color', ([first]) => first.color === '#0b7285');
    same('the page', await table(v).getByRole('link').allInnerTexts(), want);
    await v.inspect();
    await v.shot('environments');
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.inspect();
    await v.shot('environments-phone');
    await v.button('Move staging down').click();
    await saved(v, tenant, 'the order between', (list) => list[0].name === 'production');
    await v.button('Move staging up').click();
    await saved(v, tenant, 'the order', (list) => list.map(({ name }) => name).join() === want.join());
    await v.page.setViewportSize({ width: 1280, height: 800 });

    // The switcher, with the colors.
    const switcher = v.page.getByRole('combobox', { name: 'Environment', exact: true });
    await switcher.click();
    await v.until(
      'the switcher has the order',
      async () => (await v.page.getByRole('option').allInnerTexts()).join() === want.join(),
    );
    await v.page.locator('[role=option] circle[fill="#0b7285"]').waitFor();
    await v.inspect();
    await v.page.keyboard.press('Escape');

    // The switches of a flag stand still, wherever the person is.
    const switches = v.page.getByRole('list', { name: 'Environments', exact: true }).first();
    for (const environment of ['development', 'staging']) {
      await v.open(`/t/${tenant}/${environment}/flags/cart?tab=environments`);
      await v.heading('development').waitFor();
      same('the switches', (await switches.allInnerTexts())[0].trim().split(/\s+/), want);
      same(
        'the columns',
        await v.page.getByRole('heading', { level: 2, name: /^(st|prod|dev)/ }).allInnerTexts(),
        want,
      );
    }
    await switches.locator('circle[fill="#0b7285"]').waitFor();
    await v.button('Copy from production').click();
    await v.field('To').waitFor();
    const targets = await v.field('To').locator('option').allInnerTexts();
    same('the targets of a copy', targets, ['staging', 'development']);
    await v.page.keyboard.press('Escape');
    await v.open(`/t/${tenant}/staging/flags/cart?tab=history&version=1`);
    await v.page.locator('strong').filter({ hasText: 'development' }).waitFor();
    same(
      'a version',
      (await v.page.locator('strong').allInnerTexts()).filter((text) => want.includes(text)),
      want,
    );

    await v.open(`/t/${tenant}/staging/flag-rules`);
    await v.page.getByRole('checkbox', { name: 'staging' }).waitFor();
    const boxes = v.page.getByRole('group', { name: 'Changes that need a reason' }).getByRole('checkbox');
    same('the flag rules', await boxes.evaluateAll((all) => all.map((box) => box.getAttribute('aria-label'))), want);
    await v.open(`/t/${tenant}/staging/playground`);
    await v.field('Targeting key').fill('u');
    await v.page.keyboard.press('Enter');
    const heads = v.page.getByRole('columnheader');
    await heads.filter({ hasText: 'development' }).waitFor();
    same('the playground', (await heads.allInnerTexts()).slice(1), want);

    // The trail says it in words.
    await v.open(`/t/${tenant}/staging/audit`);
    await v.page.locator('summary', { hasText: 'arranged the environments of' }).first().click();
    await v.page.getByRole('rowheader', { name: 'Order of environments' }).first().waitFor();
  },

  'a change of the order or a color keeps what another person changes meanwhile': async (come) => {
    const v = await come();
    const tenant = await begin(v);
    await v.open(`/t/${tenant}/production/environments`);
    await v.button('Move staging up').waitFor();
    await v.call('POST', at(tenant), { environment: 'qa' });
    const { environments } = await v.call('GET', `${at(tenant)}/settings`);
    environments[1].color = '#112233';
    await v.call('PUT', `${at(tenant)}/settings`, { environments: environments.toReversed() });
    await v.field('Color of staging').fill('#0b7285');
    await v.button('Move qa down').waitFor();
    const colors = { production: environments[0].color, development: '#112233', staging: '#0b7285' };
    await saved(v, tenant, 'the color', (list) => list.find(({ name }) => name === 'staging').color === '#0b7285');
    const list = (await v.call('GET', `${at(tenant)}/settings`)).environments;
    same('the order', list.map(({ name }) => name), ['qa', 'staging', 'development', 'production']); // prettier-ignore
    for (const [name, color] of Object.entries(colors)) same(name, list.find((one) => one.name === name).color, color);
    await v.inspect();
  },
};
