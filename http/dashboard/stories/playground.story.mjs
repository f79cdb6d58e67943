async function begin(v) {
  await v.signUp();
  for (const key of ['banner', 'checkout', 'search']) await v.call('POST', '/api/v1/flags', { key, type: 'boolean' });
  await v.call('PUT', '/api/v1/flags/checkout/rules', {
    rules: [{ name: 'Paying', conditions: [{ attribute: 'seats', op: 'gte', values: [10] }], serve: { value: true } }],
  });
  await v.call('PUT', '/api/v1/flags/checkout/fallthrough', { serve: { value: false } });
  const before = new Date().toISOString();
  await v.call('POST', '/api/v1/flags/checkout/enable');
  await v.open(`/t/${v.place.tenant}/production/playground`);
  await v.heading('Playground').waitFor();
  return before;
}

export default {
  'somebody is asked for, in all environments, now and at a moment': async (come) => {
    const v = await come({ refused: [404] });
    const before = await begin(v);
    const cell = (flag, value, environment) =>
      v.page.getByRole('button', { name: new RegExp(`^${value} .*${flag} in ${environment}$`) });
    await cell('checkout', 'false', 'production').waitFor();
    await v.button('Add attribute').click();
    await v.field('Attribute name').fill('seats');
    await v.field('Value of seats').fill('12');
    await cell('checkout', 'true', 'production').waitFor();
    await cell('checkout', 'false', 'development').waitFor();
    await v.page.getByText('3 flags, 1 differs between environments').waitFor();
    await v.inspect();
    await v.shot('playground');

    await v.page.getByLabel('Only what differs').check();
    await v.link('banner').waitFor({ state: 'detached' });
    await cell('checkout', 'true', 'production').click();
    await v.page.getByRole('dialog').getByText('seats is at least 10').waitFor();
    await v.inspect();
    await v.shot('playground-why');
    await v.page.keyboard.press('Escape');

    // The user is stored in the tab, everything else in the URL.
    await v.page.getByRole('radio', { name: 'JSON' }).click();
    if ((await v.field('Attributes').inputValue()) !== '{"seats":12}') throw new Error('the number is another one');
    await v.field('Attributes').fill('{"seats":');
    await v.page.getByText('Attributes must be valid JSON: see line 1, column 10.').waitFor();
    await v.field('Attributes').fill('{"seats":13}');
    await v.page.reload();
    await cell('checkout', 'true', 'production').waitFor();
    if (await v.link('banner').isVisible()) throw new Error('the URL has not kept what is shown');

    // Previews do not count as usage; calls of a program do.
    await v.call('POST', '/api/v1/flags/banner/evaluate', {});
    await v.until('the use is counted', async () => (await v.call('GET', '/api/v1/flags/banner')).lastEvaluatedAt);
    for (const flag of await v.call('GET', '/api/v1/flags')) {
      if (flag.lastPrefetchedAt) throw new Error(`${flag.key} counts as asked for at ${flag.lastPrefetchedAt}`);
    }

    // Then it was off.
    await v.page.getByLabel('Only what differs').uncheck();
    await v.page.getByRole('radio', { name: 'At a time' }).click();
    await v.field('Time').waitFor();
    // A typed year counts when complete; a picked date counts at once.
    const at = () => new URL(v.page.url()).searchParams.get('at');
    const now = at();
    await v.field('Time').focus();
    for (const key of ['ArrowRight', 'ArrowRight', ...(new Date().getFullYear() - 4 + '')]) {
      await v.page.keyboard.press(key);
      if (at() !== now) throw new Error(`${key} led to ${at()}`);
    }
    await v.page.keyboard.press('Enter');
    await v.until('it counts', () => at()?.startsWith(new Date().getFullYear() - 4 + ''));
    await v.field('Time').click();
    await v.field('Time').evaluate((field) => {
      field.value = '2001-02-03T04:05:06';
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
    await v.until('so does what is picked', () => at()?.startsWith('2001-02-'));
    const url = new URL(v.page.url());
    url.searchParams.set('at', before);
    await v.page.goto(url.href);
    await cell('checkout', 'false', 'production').getByText('The flag is off').waitFor();
    await v.page.getByLabel('development').uncheck();
    await cell('checkout', 'false', 'development').waitFor({ state: 'detached' });
    await v.field('Find flags').fill('ban');
    await v.link('checkout').waitFor({ state: 'detached' });
    await v.page.getByText('1 flag, 0 differ between environments').waitFor();
    await v.inspect();
  },

  'what others switch is seen without reading anew, also in the clean-up': async (come) => {
    const v = await come();
    await begin(v);
    const follow = async (go) => {
      const heard = v.page.waitForResponse('**/api/v1/flags/stream');
      await go();
      await heard;
    };
    await follow(() => v.page.reload());
    const cell = (value) => v.page.getByRole('button', { name: new RegExp(`^${value} .*checkout in production$`) });
    await cell('false').waitFor();
    const moment = await v.page.evaluate(() => (window.stayed = true));
    const switched = async (how) => {
      await v.call('POST', '/api/v1/flags/checkout/' + how);
      await cell('false')
        .getByText(how === 'disable' ? 'The flag is off' : 'No rule matched')
        .waitFor();
    };
    await switched('disable');
    await switched('enable');
    if ((await v.page.evaluate(() => window.stayed)) !== moment) throw new Error('the page was loaded again');

    let read = 0;
    await v.page.route('**/api/v1/cleanup?**', (route) => {
      read++;
      return route.fallback();
    });
    await follow(() => v.open(`/t/${v.place.tenant}/production/cleanup`));
    await v.page.getByText('Nothing to clean up').waitFor();
    const before = read;
    await v.call('POST', '/api/v1/flags/checkout/disable');
    await v.until('the clean-up is read again', () => read > before);
  },

  'the attributes of a trace explain its answer after the flag has changed': async (come) => {
    const v = await come({ refused: [404] });
    await begin(v);
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags/search/variations', { name: 'fast', value: true, weight: 1 });
    await v.call('POST', '/api/v1/flags/search/enable', undefined, undefined, 'development');
    const evaluate = '/api/v1/flags/search/evaluate';
    const { revision } = await v.call('POST', evaluate, { targetingKey: 'anna' }, undefined, 'development');
    await v.call('POST', '/api/v1/flags/search/disable', undefined, undefined, 'development');
    const attributes = {
      'feature_flag.key': 'search',
      'feature_flag.context.id': 'anna',
      'feature_flag.set.id': `${tenant}/development`,
      'feature_flag.version': revision,
      'feature_flag.result.variant': 'fast',
    };
    const dialog = v.page.getByRole('dialog');
    const lines = (between) => Object.entries(attributes).map(([name, value]) => name + between + value);
    const texts = [JSON.stringify(attributes), lines('=').join('\n'), lines(': ').join('\n')];
    for (const text of texts) {
      await v.open(`/t/${tenant}/production/playground`);
      await v.button('Paste a trace').click();
      await v.focused('Attributes of the trace');
      await v.button('Explain').click();
      await dialog.getByText('Attributes of the trace must have feature_flag.key.').waitFor();
      await v.field('Attributes of the trace').fill(text);
      await v.inspect();
      await v.shot('trace');
      await v.button('Explain').click();
      await v.heading('search in development').waitFor();
      await dialog.getByText('They got fast').waitFor();
      await dialog.getByText('The trace recorded fast, too.').waitFor();
      await v.inspect();
      await v.shot('trace-explained');
      await v.page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      if ((await v.field('Targeting key').inputValue()) !== 'anna') throw new Error('the user is another one');
      if (v.place.environment !== 'development') throw new Error(`it is in ${v.place.environment}`);
    }
    await v.button('Paste a trace').click();
    await v.field('Attributes of the trace').fill(texts[1].replace('=fast', '=slow'));
    await v.button('Explain').click();
    await dialog.getByText('The trace recorded slow. The user had other attributes').waitFor();
  },

  'environments have room beside each other, and each flag its whole row': async (come) => {
    const v = await come();
    await begin(v);
    const { tenant } = v.place;
    const inside = async () => {
      const [head, row] = [v.page.getByRole('columnheader').first(), v.link('banner')];
      await row.waitFor();
      const [above, below] = [await head.boundingBox(), await row.boundingBox()];
      if (above.y + above.height > below.y) throw new Error('the head of the table covers its first row');
    };
    for (const name of ['staging', 'preview', 'acceptance']) {
      await v.call('POST', `/api/v1/tenants/${tenant}/environments`, { environment: name });
      await v.page.reload();
      await v.page.getByRole('columnheader', { name }).waitFor();
      await inside();
      if (name !== 'preview') continue;
      const box = await v.page.getByRole('columnheader', { name }).boundingBox();
      if (box.x + box.width > 1280) throw new Error('a column is cut off');
      await v.shot('playground-four');
    }
    await v.shot('playground-five');
  },

  'the playground at 360 px, in the dark': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    await begin(v);
    await v.link('search').waitFor();
    await v.inspect();
    await v.shot('playground-360');
    await v.link('search').scrollIntoViewIfNeeded();
    await v.shot('playground-360-table');
  },
};
