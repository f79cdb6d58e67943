// Names that people chose do not turn the text around them, whichever way their letters are read.
const person = 'דנה לוי (QA)';
const names = {
  tenant: 'متجر 24',
  project: 'חנות 7',
  flag: 'דגל 3',
  variation: 'أحمر 1',
  rule: 'לקוחות 5',
  tag: 'تخفيض 2',
  client: 'שרת 9',
  key: 'חנות ברשת 6',
  segment: 'צוות 6',
  member: 'משתמש 11',
};

/** The texts with letters that are read from the right and nothing that isolates them. */
const unisolated = (page) =>
  page.evaluate(() => {
    const fromRight = /[\u0590-\u08ff]/;
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data, parentElement } = walker.currentNode;
      if (parentElement.closest('bdi, [dir=auto], option, script, style')) continue;
      let left = data;
      for (let last; last !== left;) [last, left] = [left, left.replace(/\u2068[^\u2068\u2069]*\u2069/, '')];
      if (fromRight.test(left)) found.push(`${parentElement.outerHTML.slice(0, 300)}`);
    }
    return found;
  });

async function furnish(v) {
  await v.open('/sign-up');
  await v.field('Name').fill(person);
  await v.fillSignUp();
  await v.heading('Flags').waitFor();
  const { tenant } = v.place;
  const { id: owner } = await v.call('GET', '/api/v1/users/me').catch(() => ({}));
  await v.call('PATCH', `/api/v1/tenants/${tenant}`, { name: names.tenant });
  const { id: projectId } = await v.call('POST', '/api/v1/projects', { name: names.project, description: 'פרויקט 1' });
  await v.call('POST', '/api/v1/oauth/clients', { name: names.client, scopes: ['flags:evaluate'] });
  await v.call('POST', '/api/v1/evaluation-keys', { name: names.key, kind: 'browser', environment: 'production' });
  const members = await v.call('GET', `/api/v1/tenants/${tenant}/users`);
  const { variations } = await v.call('POST', '/api/v1/flags', {
    key: 'checkout',
    name: names.flag,
    description: 'תיאור של הדגל, גרסה 2',
    type: 'string',
    tags: [names.tag],
    projectId,
    owner: owner ?? members[0].userId,
    links: [{ title: 'דף 4', url: 'https://example.com/4' }],
    flag_variations: [
      { name: names.variation, value: 'red', weight: 1, description: 'וריאציה 1' },
      { name: 'blue', value: 'blue', weight: 1 },
    ],
  });
  const [red, blue] = variations.map(({ id }) => id);
  const rule = { name: names.rule, conditions: [{ attribute: 'plan', op: 'in', values: ['חינם'] }] };
  const flag = '/api/v1/flags/checkout';
  await v.call('PUT', `${flag}/rules`, { rules: [{ ...rule, serve: { variationId: red } }] }, 'סיבה 8');
  await v.call('PUT', `${flag}/fallthrough`, {
    serve: { rollout: [red, blue].map((variationId) => ({ variationId, weight: 1 })) },
  });
  await v.call('PATCH', `${flag}/variations/${red}`, { name: `${names.variation}!` });
  await v.call('PATCH', flag, { name: `${names.flag}!`, tags: [names.tag, 'plain'] });
  await v.call('POST', '/api/v1/segments', { key: 'staff', name: names.segment, tags: [names.tag], rules: [rule] });
  const staff = '/api/v1/segments/staff';
  await v.call('POST', `${staff}/members`, { list: 'included', add: [names.member] }, 'סיבה 8');
  await v.call('PATCH', staff, { description: 'תיאור 3' });
  await v.call('POST', `${flag}/enable`);
  await v.call('POST', `${flag}/evaluate`, { targetingKey: 'u', environment: 'production' });
  return tenant;
}

export default {
  'names that are read from the right stay apart on every page': async (come) => {
    const v = await come();
    const tenant = await furnish(v);
    const wrong = [];
    const look = async (what) => {
      for (const found of await unisolated(v.page)) wrong.push(`${what}: ${found}`);
    };
    const pages = {
      flags: names.flag,
      'flags/checkout': names.variation,
      'flags/checkout?tab=overview': names.variation,
      'flags/checkout?tab=rules': names.rule,
      'flags/checkout?tab=environments': names.rule,
      'flags/checkout?tab=use': names.variation,
      'flags/checkout?tab=history': names.rule,
      'flags/checkout?tab=history&version=2': names.rule,
      segments: names.segment,
      'segments/staff': names.rule,
      'segments/staff?tab=members': names.member,
      'segments/staff?tab=history&version=2': names.rule,
      'segments/staff?tab=settings': 'Settings',
      'playground': 'checkout', // prettier-ignore
      projects: names.project,
      audit: person,
      members: person,
      clients: names.client,
      keys: names.key,
      cleanup: 'Nothing to clean up',
      environments: 'production',
      usage: 'Limits',
      billing: 'Features',
      settings: 'Settings',
      profile: person,
    };
    for (const [page, text] of Object.entries(pages)) {
      await v.open(`/t/${tenant}/production/${page}`);
      await v.page.getByRole('main').getByText(text).filter({ visible: true }).first().waitFor();
      await look(page);
      await v.inspect();
      await v.shot(`names-${page.replace(/\W+/g, '-')}`);
    }

    // What opens on these pages.
    await v.open(`/t/${tenant}/production/audit`);
    await v.page.locator('details').first().waitFor();
    for (const entry of await v.page.locator('details').all()) await entry.locator('summary').click();
    await v.page.getByRole('rowheader', { name: /Weight|weight|Name/ }).first().waitFor(); // prettier-ignore
    await look('the entries of the trail');
    await v.open(`/t/${tenant}/production/flags`);
    await v.heading('Flags').waitFor();
    await v.page.keyboard.press('Control+k');
    await v.page.getByRole('option', { name: 'checkout' }).waitFor();
    await look('the palette');
    await v.page.keyboard.press('Escape');
    await v.button('Account').click();
    await look('the menu of the account');
    await v.page.keyboard.press('Escape');
    for (const [page, button] of [
      ['clients', `Delete ${'\u2068' + names.client + '\u2069'}`],
      ['flags/checkout?tab=overview', `Edit ${'\u2068' + names.variation}!\u2069`],
    ]) {
      await v.open(`/t/${tenant}/production/${page}`);
      await v.button(button).click();
      await v.page.getByRole('dialog').waitFor();
      await look(`${button} on ${page}`);
    }
    if (wrong.length) throw new Error(`not isolated:\n${[...new Set(wrong)].join('\n')}`);
  },
};
