// The rules of a flag, and how few acts they take.
async function open(v, flag, tab) {
  await v.signUp();
  await v.call('POST', '/api/v1/flags', flag);
  await v.open(`/t/${v.place.tenant}/production/flags/${flag.key}${tab ? `?tab=${tab}` : ''}`);
  await v.heading(flag.key).waitFor();
}

const save = async (v) => {
  await v.button('Save').click();
  await v.button('Save').waitFor({ state: 'detached' });
};

const paste = (field, text) =>
  field.evaluate((node, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text', pasted);
    node.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, text);

/** Fails if a field that has the focus is under the bar of changes. */
async function notCovered(v, what) {
  await v.until(`${what} is above the bar`, () =>
    v.page.evaluate(() => {
      const [field, bar] = [document.activeElement, document.querySelector('form[aria-label="What changes"]')];
      if (!bar || bar.contains(field) || field === document.body) return true;
      const [its, bars] = [field, bar].map((node) => node.getBoundingClientRect());
      const apart = (a, b) => a.bottom <= b.top || a.right <= b.left;
      return apart(its, bars) || apart(bars, its);
    }),
  );
}

const inView = (locator) =>
  locator.evaluate((node) => {
    const { top, bottom } = node.getBoundingClientRect();
    const head = document.querySelector('header').getBoundingClientRect().bottom;
    return top >= head - 1 && bottom <= innerHeight + 1;
  });

export default {
  'a new boolean flag is rolled out to 10 % in five acts, then to 50 % in two': async (come) => {
    const v = await come();
    await open(v, { key: 'launch', type: 'boolean' });
    const strip = v.page.getByRole('list', { name: 'What each environment serves now' });
    await strip.getByText('production: off, serves false').waitFor();
    await v.page.getByText('The value of a flag that is on, true').waitFor({ state: 'attached' });

    await v.field('Everyone else gets').selectOption('A percentage rollout');
    await v.field('Weight of on').fill('10');
    await v.page.getByText('90%', { exact: true }).waitFor();
    await v.page.getByText('Save the rules to see the answer').waitFor();
    await v.inspect();
    await v.shot('rollout-new');
    await save(v);
    await v.turn('launch'); // a click, and one to confirm
    await strip.getByText('production: on, serves 10% on, 90% off').waitFor();
    await v.page.getByText('Shows what the saved rules serve.').waitFor();
    const { variations } = await v.call('GET', '/api/v1/flags/launch');
    if (variations.map(({ name, value }) => `${name} ${value}`).join() !== 'on true,off false')
      throw new Error(JSON.stringify(variations));

    await v.field('Weight of on').fill('50');
    await save(v);
    await strip.getByText('production: on, serves 50% on, 50% off').waitFor();
    const { fallthrough } = await v.call('GET', '/api/v1/flags/launch/rules');
    if (fallthrough.rollout.map(({ weight }) => weight).join() !== '50,50')
      throw new Error(JSON.stringify(fallthrough));
    await v.inspect();

    // Old links lead where they led.
    await v.open(`/t/${v.place.tenant}/production/flags/launch?tab=overview`);
    await v.page.getByText('All weights are 0').waitFor();
    await v.page.getByText('it serves true while it is on').waitFor();
    await v.inspect();
  },

  'on and off that exist when the rules are refused are served by them when they are saved again': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'again', type: 'boolean' });
    let refusals = 0;
    await v.page.route('**/flags/again/rules', (route) =>
      route.request().method() !== 'PUT' || refusals++
        ? route.continue()
        : route.fulfill({
            status: 422,
            contentType: 'application/problem+json',
            body: '{"status":422,"detail":"later"}',
          }),
    );
    await v.button('Add rule').click();
    await v.button('Delete condition').click();
    await v.field('Serve').selectOption('off');
    await v.button('Save').click();
    await v.page.getByText('Later.').waitFor();
    await v.until('they exist', async () => (await v.call('GET', '/api/v1/flags/again')).variations.length === 2);
    await save(v);
    const { variations } = await v.call('GET', '/api/v1/flags/again');
    const { rules } = await v.call('GET', '/api/v1/flags/again/rules');
    if (variations.length !== 2 || rules[0].serve.variationId !== variations[1].id)
      throw new Error(JSON.stringify([variations, rules]));
  },

  'a user is targeted in four acts, by keyboard, and a pasted list becomes many': async (come) => {
    const v = await come({ refused: [412] }); // the page may not have heard yet that the flag was switched on
    await open(v, { key: 'beta', type: 'boolean' });
    await v.call('POST', '/api/v1/flags/beta/enable');
    await v.button('Target users').press('Enter');
    await v.focused('Targeting keys');
    await v.page.keyboard.type('user-42');
    await v.page.keyboard.press('Tab');
    await v.inspect();
    await save(v);
    const read = async () => (await v.call('GET', '/api/v1/flags/beta/rules')).rules;
    const [rule] = await read();
    if (JSON.stringify(rule.conditions[0].values) !== '["user-42"]') throw new Error(JSON.stringify(rule));
    const { value } = await v.call('POST', '/api/v1/flags/beta/evaluate', { targetingKey: 'user-42' });
    if (value !== true) throw new Error(`they get ${value}`);

    // It is recognised by its shape, and stays above the rules.
    await v.page.reload();
    await v.heading('Individual users').waitFor();
    await v.page.getByText('No rules').waitFor();
    await v.field('Targeting keys').fill('half');
    await paste(v.field('Targeting keys'), 'a-1, a-2\na-3\r\n"b, c","d"\n');
    if ((await v.field('Targeting keys').inputValue()) !== 'half') throw new Error('the typed text is lost');
    await v.field('Targeting keys').fill('');
    for (const key of ['a-1', 'a-2', 'a-3']) await v.button(`Remove ${key}`).waitFor();
    await v.button('Target users').click();
    await v.field('Targeting keys').last().fill('other');
    await v.field('Serve').last().selectOption('off');
    await v.button('Add rule').click();
    await v.field('Attribute').fill('plan');
    await v.field('Operator').selectOption('contains');
    await paste(v.field('Values'), 'pro,team');
    await v.button('Remove team').waitFor();
    await save(v);
    const shown = JSON.stringify((await read()).map(({ conditions: [{ attribute, values }] }) => [attribute, values]));
    if (
      shown !==
      '[["targetingKey",["user-42","a-1","a-2","a-3","b, c","d"]],["targetingKey",["other"]],["plan",["pro","team"]]]'
    )
      throw new Error(shown);
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.inspect();
    await v.shot('targets-390');
    await v.button('Delete target 2').click();
    await save(v);
    if ((await read()).length !== 2) throw new Error('the target is still there');
  },

  'a variation “on” that serves false is not taken for the one of a draft': async (come) => {
    const v = await come({ refused: [412, 422] });
    await open(v, { key: 'odd', type: 'boolean' });
    await v.button('Target users').click();
    await v.field('Targeting keys').fill('user-1');
    await v.call('POST', '/api/v1/flags/odd/variations', { name: 'on', value: false, weight: 1 });
    await v.until('it is offered, too', async () => (await v.field('Serve').locator('option').count()) >= 3);
    await v.button('Save').click();
    await v.page.getByRole('alert').waitFor();
    const { rules } = await v.call('GET', '/api/v1/flags/odd/rules');
    if (rules.length) throw new Error(JSON.stringify(rules));
  },

  'the bar of changes covers no field that has the focus': async (come) => {
    const v = await come();
    await open(v, { key: 'wide', type: 'string' });
    for (const name of ['a', 'b', 'c']) {
      await v.call('POST', '/api/v1/flags/wide/variations', { name, value: name, weight: 1 });
    }
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ]) {
      await v.page.setViewportSize({ width, height });
      await v.page.reload();
      await v.page.getByRole('tab', { name: 'Rules' }).click();
      await v.button('Add rule').click();
      await v.focused('Name');
      await notCovered(v, `the name of a new rule at ${width} px`);
      await v.field('Serve').first().selectOption('rollout');
      await v.field('Everyone else gets').selectOption('rollout');
      await v.field('Name').focus();
      for (let i = 0; i < 40; i++) {
        await v.page.keyboard.press('Tab');
        await notCovered(v, `field ${i} of the rules at ${width} px`);
      }
      await v.inspect();
      await v.shot(`bar-${width}`);
      await v.button('Discard').click();
      await v.page.getByRole('tab', { name: 'Overview' }).click();
      for (const name of ['Description', 'Default value']) {
        await v.field(name).fill('x'.repeat(20));
        await notCovered(v, `${name} at ${width} px`);
      }
      await v.button('Discard').click();
    }
  },

  'JSON is refused with its line and column, keeps its digits, and is compared by lines': async (come) => {
    const v = await come({ refused: [422] });
    await open(v, { key: 'limits', type: 'json' }, 'overview');
    const value = v.field('Default value');
    await value.fill('{\n  "most": 1.0,\n  "price" 2\n}');
    await value.blur();
    await v.page.getByText('Default value must be valid JSON: see line 3, column 11.').waitFor();
    await v.page.getByText('not valid yet').waitFor();
    await v.inspect();
    await v.shot('json-invalid');
    await v.button('Save').click();
    await value.fill('{"a": 1, "a": 2}');
    await v.page.getByText('Default value must be valid JSON: see line 1, column 10, which repeats "a".').waitFor();
    await value.fill('['.repeat(20_000));
    await v.page.getByText('Default value must be JSON with at most 64 levels: see line 1, column 65.').waitFor();
    const diff = v.page.getByRole('group', { name: 'Changed lines' });
    await value.fill(JSON.stringify(Array(30).fill(1)));
    await v.until('the keyboard scrolls many lines', async () => (await diff.getAttribute('tabindex')) === '0');
    await value.fill('[1]');
    await v.until('it skips a few', async () => (await diff.getAttribute('tabindex')) === null);
    const text = '{\n  "most": 1.0,\n  "id": 12345678901234567890,\n  "list": [\n    1e400\n  ]\n}'.replace(
      '1e400',
      '1.50',
    );
    await value.fill(text);
    await v.page.locator('ins', { hasText: '"most": 1.0,' }).waitFor();
    await save(v);
    await v.page.reload();
    await v.until('all digits are there', async () => (await value.inputValue()) === text);
    await value.fill(text.replace('"most": 1.0', '"most": 2.0'));
    await v.page.locator('del', { hasText: '"most": 1.0,' }).waitFor();
    await v.page.locator('ins', { hasText: '"most": 2.0,' }).waitFor();
    if (await v.page.locator('ins', { hasText: '"id"' }).count()) throw new Error('an equal line is shown as changed');
    await v.inspect();
    await save(v);
    await v.page.getByRole('tab', { name: 'History' }).click();
    await v.page.locator('del', { hasText: '"most": 1.0,' }).waitFor();

    // A rule's value, too.
    const serve = (most) => ({ rules: [{ name: 'Some', conditions: [], serve: { value: { most, least: 1 } } }] });
    await v.call('PUT', '/api/v1/flags/limits/rules', serve(2));
    await v.page.getByRole('tab', { name: 'Rules' }).click();
    await v.button('Edit rule Some').click();
    await v.field('Value').fill('{\n  "most": 3,\n  "least": 1\n}');
    await v.page.locator('ins', { hasText: '"most": 3,' }).waitFor();
    if (await v.page.getByRole('form').locator('ins', { hasText: '"least"' }).count())
      throw new Error('an equal line is shown as changed');
    await save(v);
    await v.page.getByRole('tab', { name: 'History' }).click();
    await v.page.locator('del', { hasText: '"most": 2,' }).waitFor();
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.inspect();
    await v.shot('json-history-390');
  },

  'a hundred rules are rows that a click opens and words find, and fifty variations fold': async (come) => {
    const v = await come();
    await open(v, { key: 'many', type: 'string' });
    const flag_variations = Array.from({ length: 50 }, (_, i) => ({ name: `v${i}`, value: `v${i}` }));
    const { variations } = await v.call('POST', '/api/v1/flags', { key: 'crowd', type: 'string', flag_variations });
    const rules = Array.from({ length: 100 }, (_, i) => ({
      name: `Country ${i}`,
      conditions: [{ attribute: 'country', op: 'in', values: [`c${i}`] }],
      serve: { variationId: variations[i % 50].id },
    }));
    await v.call('PUT', '/api/v1/flags/crowd/rules', { rules });
    await v.call('POST', '/api/v1/flags/crowd/enable');
    await v.open(`/t/${v.place.tenant}/production/flags/crowd`);
    const cards = v.page.getByRole('article');
    await v.until('all are listed', async () => (await cards.count()) === 100);
    const { height } = await cards.first().boundingBox();
    if (height > 48) throw new Error(`a row is ${height} px high`);

    // The rule that decides is on top; the others are folded.
    await v.button('Add attribute').click();
    await v.field('Attribute name').fill('country');
    await v.field('Value of country').fill('c77');
    await v.page.getByText('matched', { exact: true }).waitFor();
    await v.page.getByText('79 steps before it').waitFor();
    if (await v.page.getByText('did not match').first().isVisible())
      throw new Error('the steps before it are unfolded');

    await v.field('Filter rules').fill('country c77');
    await v.until('one is found', async () => (await cards.count()) === 1);
    await cards.click(); // anywhere
    await v.field('Name').fill('Found');
    await v.field('Filter rules').fill('nothing like this');
    await v.page.getByText('No rule has these words.').waitFor();
    await v.field('Name').waitFor(); // an open rule stays
    await v.field('Filter rules').fill('c77');
    await v.button('Move Found up').click();
    await v.field('Serve').first().selectOption('A percentage rollout');
    await v.button('Show all 50 shares').waitFor();
    if (
      (await v.page
        .getByLabel(/^Weight of /)
        .filter({ visible: true })
        .count()) !== 1
    )
      throw new Error('shares of 0 are listed');
    await v.inspect();
    await v.shot('rules-many');
    await save(v);
    const now = await v.call('GET', '/api/v1/flags/crowd/rules');
    if (now.rules[76].name !== 'Found' || now.rules.length !== 100) throw new Error(now.rules[76].name);
    await v.button('Add rule').click();
    await v.until('the new rule is shown too', async () => (await v.field('Name').count()) === 2);
    await v.button('Discard').click();

    await v.page.getByRole('tab', { name: 'Overview' }).click();
    await v.button('Show all 50').click();
    await v.button('Edit v49').waitFor();
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.inspect();
  },

  'a conflict is told once and resolved in two acts, and the chosen version is in sight': async (come) => {
    const v = await come({ refused: [412] });
    await open(v, { key: 'both', type: 'boolean' });
    const rule = (name) => ({ name, conditions: [], serve: { value: true } });
    for (let i = 0; i < 20; i++) await v.call('PUT', '/api/v1/flags/both/rules', { rules: [rule(`Rule ${i}`)] });
    await v.page.reload();
    await v.button('Edit rule Rule 19').click();
    await v.field('Name').fill('Mine');
    const w = await come();
    const other = `${crypto.randomUUID()}@example.com`;
    await v.call('POST', `/api/v1/tenants/${v.place.tenant}/users`, { email: other, role: 'developer' });
    await w.signUp(other);
    await w.open(`/t/${v.place.tenant}/production/flags`);
    await w.heading('Flags').waitFor();
    const [{ id }] = (await w.call('GET', '/api/v1/flags/both/rules')).rules;
    await w.call('PUT', '/api/v1/flags/both/rules', { rules: [{ id, ...rule('Theirs') }] });
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.page.getByText(other).first().waitFor();
    await v.button('Seen').waitFor({ state: 'detached' });
    // What changes is compared with their state.
    const form = v.page.getByRole('form', { name: 'What changes' });
    await form.locator('details').getByText('Theirs', { exact: true }).waitFor();
    if (await form.locator('details').getByText('Rule 19', { exact: true }).count())
      throw new Error('it is compared with a state that is gone');
    await v.inspect();
    await v.shot('conflict-once');
    await v.button('Keep mine').click();
    await save(v);
    const { rules } = await v.call('GET', '/api/v1/flags/both/rules');
    if (rules[0].name !== 'Mine') throw new Error(JSON.stringify(rules));

    await v.page.getByRole('tab', { name: 'History' }).click();
    await v.page.getByRole('slider', { name: 'Version' }).press('Home');
    await v.heading('The flag at version 1').waitFor();
    await v.until('the entry is in sight', () => inView(v.link('Show version 1')));
    await v.page.setViewportSize({ width: 390, height: 844 });
    await v.link('Show version 2').click();
    await v.until('the state is in sight', () => inView(v.heading('The flag at version 2')));
    await v.inspect();
  },

  'what environments serve is told as it is': async (come) => {
    const v = await come();
    await open(v, { key: 'told', type: 'string' });
    const ids = [];
    for (const name of ['red', 'blue', 'green']) {
      ids.push((await v.call('POST', '/api/v1/flags/told/variations', { name, value: name })).id);
    }
    const values = Array.from({ length: 9 }, (_, i) => `user-${i}`);
    const put = (weights, values, environment) =>
      v.call(
        'PUT',
        '/api/v1/flags/told/rules',
        {
          rules: [
            {
              name: 'Some',
              conditions: [{ attribute: 'team', op: 'in', values }],
              serve: { rollout: weights.map((weight, i) => ({ variationId: ids[i], weight })) },
            },
          ],
        },
        '',
        environment,
      );
    await put([1, 1, 1], values, 'production');
    await put([2, 2, 2], values, 'development');
    const environments = `/t/${v.place.tenant}/production/flags/told?tab=environments`;
    await v.open(environments);
    // Equal shares are no difference, whatever their weights.
    await v.page.getByText('As in production').waitFor();
    if (await v.page.getByText('Differs', { exact: true }).count()) throw new Error('equal shares differ');
    // A difference is seen, also that of the ninth value or of a number and a text.
    await put([1, 1, 1], [...values.slice(0, 8), 'user-x'], 'development');
    await v.page.getByText('Differs', { exact: true }).waitFor();
    await v.page.getByText('user-x').waitFor();
    await v.inspect();

    await v.call('PUT', '/api/v1/flags/told/rules', { rules: [] });
    await v.call('PUT', '/api/v1/flags/told/fallthrough', {
      serve: { rollout: ids.map((variationId) => ({ variationId, weight: 1 })) },
    });
    await v.open(`/t/${v.place.tenant}/production/flags/told`);
    await v.page.getByText('Add a rule to serve something else to some.').waitFor();
    if (await v.page.getByText('Everyone gets the same').count()) throw new Error('a split is the same for everyone');

    // An unnamed rule has its condition as a name in the explanation, too.
    await v.call('PUT', '/api/v1/flags/told/rules', {
      rules: [{ conditions: [{ attribute: 'plan', op: 'in', values: ['pro'] }], serve: { variationId: ids[0] } }],
    });
    await v.call('POST', '/api/v1/flags/told/enable');
    await v.until(
      'the explanation names it',
      async () => (await v.page.getByText('plan is one of pro', { exact: true }).count()) >= 2,
    );

    await v.call('PATCH', '/api/v1/flags/told', { status: 'archived' });
    await v.open(environments);
    await v.page.getByText('the flag is not active').first().waitFor();
    if (await v.page.getByText('until it is on').count()) throw new Error('an archived flag waits to be on');
    await v.open(`/t/${v.place.tenant}/production/flags/told`);
    await v.page.getByText('production: archived, serves ""').waitFor();
    await v.inspect();
  },
};
