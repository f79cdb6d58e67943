/** A tenant with flags in projects, with tags and owners. */
async function furnish(v, flags = 45) {
  await v.signUp();
  const { tenant } = v.place;
  const members = await v.call('GET', `/api/v1/tenants/${tenant}/users`);
  const owner = members.find(({ email }) => email === v.email).userId;
  const { id: shop } = await v.call('POST', '/api/v1/projects', { name: 'Shop' });
  const { id: office } = await v.call('POST', '/api/v1/projects', { name: 'Office' });
  const make = (flag) => v.call('POST', '/api/v1/flags', { type: 'boolean', ...flag });
  for (let i = 0; i < flags; i++) await make({ key: `z-${String(i).padStart(2, '0')}` });
  await make({ key: 'kill-refunds', name: 'Stop all refunds', tags: ['payments', 'web'], projectId: shop, owner });
  await make({ key: 'invoice-layout', tags: ['payments'], projectId: office });
  await v.page.reload();
  await v.link('invoice-layout').waitFor();
  return { tenant, owner, shop, office };
}

const shownKeys = (v) => v.page.locator('[role=row] a[title]:not([title^="Flags with"])').allInnerTexts();
const shows = (v, ...keys) =>
  v.until(`the list has ${keys}`, async () => (await shownKeys(v)).join() === keys.sort().join());

export default {
  'the first flags are asked for once, before the shell is drawn, and not without a session': async (come) => {
    const v = await come({ refused: [401] });
    await furnish(v, 2);
    const { tenant } = v.place;
    const asked = [];
    v.page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith('/api/')) asked.push(pathname);
    });
    await v.open(`/t/${tenant}/production/flags?tag=web`);
    await shows(v, 'kill-refunds');
    await v.until('the shell is drawn', () => asked.includes('/api/v1/notifications'));
    const lists = asked.filter((path) => path === '/api/v1/flags').length;
    if (lists !== 1) throw new Error(`the list is asked for ${lists} times`);
    if (asked.indexOf('/api/v1/flags') > asked.indexOf('/api/v1/notifications')) throw new Error(`${asked}`);

    asked.length = 0;
    await v.page.evaluate(() => sessionStorage.clear());
    await v.page.reload();
    await v.button('Sign in').waitFor();
    if (asked.length) throw new Error(`who is not signed in asks for ${asked}`);
  },

  'the list is narrowed by project, tag and owner, and the URL keeps it': async (come) => {
    const v = await come();
    const { owner, shop } = await furnish(v);
    await v.field('Filter by tag').selectOption('payments');
    await shows(v, 'invoice-layout', 'kill-refunds');
    await v.field('Filter by project').selectOption('Office');
    await shows(v, 'invoice-layout');
    await v.field('Filter by project').selectOption('Project');
    await v.field('Filter by owner').selectOption(v.email);
    await shows(v, 'kill-refunds');
    await v.inspect();
    await v.page.reload();
    await shows(v, 'kill-refunds');
    const query = new URL(v.page.url()).searchParams;
    if (query.get('owner') !== owner || query.get('tag') !== 'payments') throw new Error(`the URL is ${v.page.url()}`);

    // A tag in a row narrows the list too. Two words find a flag in any order.
    await v.open(`/t/${v.place.tenant}/production/flags?projectId=${shop}`);
    const row = v.page.getByRole('row', { name: 'kill-refunds' });
    await row.getByText('Shop').waitFor();
    await row.getByRole('link', { name: 'web' }).click();
    await v.until('the tag is chosen', async () => (await v.field('Filter by tag').inputValue()) === 'web');
    if ((await v.field('Filter by project').inputValue()) !== shop) throw new Error('the project is not kept');
    await v.open(`/t/${v.place.tenant}/production/flags`);
    await v.field('Search').fill('refund stop');
    await shows(v, 'kill-refunds');

    // A row links two tags, and counts the others.
    await v.call('PATCH', '/api/v1/flags/z-01', { tags: ['a', 'b', 'c', 'd'] });
    await v.field('Search').fill('z-01');
    const tagged = v.page.getByRole('row', { name: 'z-01' });
    await tagged.getByText('+2', { exact: true }).waitFor();
    if ((await tagged.getByTitle(/^Flags with/).count()) !== 2) throw new Error('a row links more than two tags');
  },

  'the list is dense, and as wide as the window': async (come) => {
    const v = await come();
    await furnish(v);
    const rows = v.page.locator('[role=rowgroup]:last-child > [role=row]');
    const heights = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
    if (!heights.length || heights.some((height) => height > 40)) throw new Error(`rows are ${heights} px high`);
    const cut = await rows.evaluateAll((all) => all.filter((row) => row.scrollHeight > row.clientHeight + 1).length);
    if (cut) throw new Error(`${cut} rows are higher than their room`);
    const cutFilters = await v.page.getByLabel(/^Filter by/).evaluateAll((all) =>
      all
        .map((select) => {
          const { font, paddingLeft, paddingRight } = getComputedStyle(select);
          const context = document.createElement('canvas').getContext('2d');
          context.font = font;
          const arrow = 16;
          const room = select.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - arrow;
          const text = select.selectedOptions[0].label;
          return context.measureText(text).width > room ? text : undefined;
        })
        .filter(Boolean),
    );
    if (cutFilters.length) throw new Error(`filters are cut: ${cutFilters}`);
    await v.shot('flags-dense');
    await v.field('Select z-00').check();
    const bar = v.page.getByRole('region', { name: 'Selected flags' });
    await bar.waitFor();
    for (let i = 0; i < 25; i++) {
      const box = v.field(`Select z-${String(i).padStart(2, '0')}`);
      await box.focus();
      const [row, top] = await Promise.all([box.boundingBox(), bar.boundingBox()]);
      if (row.y + row.height > top.y) throw new Error(`the bar covers z-${i}`);
    }
    await v.page.setViewportSize({ width: 1920, height: 1080 });
    const table = await v.page.getByRole('table', { name: 'Flags' }).boundingBox();
    if (table.x + table.width < 1880) throw new Error(`the list ends at ${table.x + table.width} px of 1920`);
    await v.inspect();
    await v.shot('flags-1920');
  },

  'many flags are tagged, moved, owned and archived at once': async (come) => {
    const v = await come({ refused: [412] });
    const { office, owner } = await furnish(v, 2);
    const dialog = v.page.getByRole('dialog');
    const choose = async (button, ...fill) => {
      for (const key of ['kill-refunds', 'z-00']) await v.field(`Select ${key}`).check();
      await v.button(button).click();
      await dialog.waitFor();
      for (const [label, act] of fill) await act(dialog.getByLabel(label, { exact: true }));
      await v.inspect();
      await v.shot(`bulk-${button.toLowerCase()}`);
      await dialog.locator('button[type=submit]').click();
      await dialog.waitFor({ state: 'detached' });
      return Promise.all(['kill-refunds', 'z-00'].map((key) => v.call('GET', `/api/v1/flags/${key}`)));
    };
    const same = (what, got, want) => {
      if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}`);
    };
    const type = (tag) => (field) => field.pressSequentially(tag); // without Enter
    const enter = (tag) => async (field) => {
      await field.pressSequentially(tag);
      await field.press('Enter');
      await dialog.getByRole('button', { name: `Remove ${tag}`, exact: true }).waitFor();
    };

    // The flag changes between the reading and the writing of its tags: both changes stay.
    let meanwhile = true;
    await v.page.route('**/api/v1/flags/z-00', async (route) => {
      if (route.request().method() === 'PATCH' && meanwhile) {
        meanwhile = false;
        await v.call('PATCH', '/api/v1/flags/z-00', { tags: ['theirs'] });
      }
      await route.continue();
    });
    let flags = await choose('Tags', ['Add tags', enter('q4')], ['Remove tags', type('web')]);
    same('tags', flags.map(({ tags }) => tags), [['payments', 'q4'], ['theirs', 'q4']]); // prettier-ignore
    await v.page.unroute('**/api/v1/flags/z-00');
    flags = await choose('Project', ['Project', (field) => field.selectOption('Office')]);
    same('projects', flags.map(({ projectId }) => projectId), [office, office]); // prettier-ignore
    flags = await choose('Project', ['Project', (field) => field.selectOption('None')]);
    same('no projects', flags.map(({ projectId }) => projectId), [null, null]); // prettier-ignore
    flags = await choose('Owner', ['Owner', (field) => field.selectOption(v.email)]);
    same('owners', flags.map((flag) => flag.owner), [owner, owner]); // prettier-ignore
    flags = await choose('Archive');
    same('status', flags.map(({ status }) => status), ['archived', 'archived']); // prettier-ignore

    // One flag is moved on its own page.
    await v.link('invoice-layout').click();
    await v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.field('Project').selectOption('Shop');
    await v.page.getByText('Office', { exact: true }).last().waitFor();
    await v.button('Save').click();
    await v.button('Save').waitFor({ state: 'detached' });
    const { projectId } = await v.call('GET', '/api/v1/flags/invoice-layout');
    if (projectId === office) throw new Error('it was not moved');
  },

  'on a phone the filters are behind a button, and the switchers in one row': async (come) => {
    const v = await come({ viewport: { width: 390, height: 844 } });
    await furnish(v, 2);
    const [tenant, environment] = await Promise.all(
      ['Tenant', 'Environment'].map((name) => v.page.getByRole('combobox', { name }).boundingBox()),
    );
    if (tenant.y !== environment.y) throw new Error('the switchers are not in one row');
    const type = v.page.getByLabel('Filter by type');
    if (await type.isVisible()) throw new Error('the filters are shown');
    await v.inspect();
    await v.button('Filters').click();
    await v.field('Filter by tag').selectOption('web');
    await v.field('Filter by type').selectOption('Boolean');
    await v.button('Filters (2)').waitFor();
    await v.inspect();
    await v.shot('filters-390');
    await v.button('Filters (2)').press('Enter');
    await type.waitFor({ state: 'hidden' });
    await shows(v, 'kill-refunds');
  },

  'the navigation has groups, and limits are shown once': async (come) => {
    const v = await come();
    await v.signUp();
    const navigation = v.page.getByRole('navigation');
    for (const [group, page] of [
      ['Work', 'Clean-up'],
      ['Set-up', 'Projects'],
      ['Tenant', 'Usage'],
    ])
      // prettier-ignore
      await navigation.getByRole('list', { name: group }).getByRole('link', { name: page }).waitFor();
    await v.page
      .getByRole('button', { name: /^Commands/ })
      .getByText(/K$/)
      .waitFor();
    await navigation.getByRole('link', { name: 'Billing' }).click();
    await v.link('Limits of the plan, and how much of them is used').click();
    await v.page.getByRole('table', { name: 'Limits' }).waitFor();
    await v.inspect();
    await v.link('Plan and payment').click();
    await v.heading('Billing').waitFor();
    if (await v.page.getByRole('table', { name: 'Limits' }).count()) throw new Error('limits are on two pages');
  },
};
