async function begin(v) {
  await v.signUp();
  await v.call('POST', '/api/v1/flags', { key: 'ranking', type: 'string', defaultValue: 'plain' });
  for (const name of ['plain', 'clever']) {
    await v.call('POST', '/api/v1/flags/ranking/variations', { name, value: name, weight: 1 });
  }
  const [, clever] = await v.call('GET', '/api/v1/flags/ranking/variations');
  await v.call('PUT', '/api/v1/flags/ranking/rules', {
    rules: [
      {
        name: 'Staff',
        conditions: [{ attribute: 'email', op: 'ends_with', values: ['@example.com'] }],
        serve: { variationId: clever.id },
      },
    ],
  });
  await v.call('POST', '/api/v1/flags/ranking/enable');
}

const part = (v, name) => v.page.getByRole('tab', { name });

export default {
  'environments are compared, one is copied to another, and what a flag serves is a chart': async (come) => {
    const v = await come();
    await begin(v);
    const { tenant } = v.place;
    for (let i = 0; i < 8; i++) {
      await v.call('POST', '/api/v1/flags/ranking/evaluate', { targetingKey: `user-${i}`, environment: 'production' });
    }
    await v.open(`/t/${tenant}/production/flags/ranking?tab=environments`);
    await v.page.getByText('Only in production').waitFor();
    await v.inspect();
    await v.shot('compare');
    await v.button('Copy from production').click();
    const dialog = v.page.getByRole('dialog');
    await dialog.getByText('Rule “Staff”').waitFor();
    await dialog.getByLabel('Whether it is on').check();
    await dialog.getByLabel('Reason').fill('proven');
    await v.inspect();
    await v.shot('compare-copy');
    await dialog.getByRole('button', { name: 'Copy', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await v.page.getByText('As in production').waitFor();
    await v.switch('ranking', { environment: 'development', checked: true }).waitFor();
    const [last, before] = await v.call('GET', '/api/v1/flags/ranking/history?environment=development');
    if (last.action !== 'enabled' || before.action !== 'rules_changed' || before.reason !== 'proven') {
      throw new Error(JSON.stringify([last, before]));
    }

    await part(v, 'Usage').click();
    const table = v.page.getByRole('table', { name: 'Evaluations in production' });
    await v.counted('ranking', 8);
    await v.page.reload();
    await table.waitFor({ state: 'attached' });
    await v.field('Period').selectOption('30 days');
    await v.until('a bar for each day', async () => (await table.getByRole('row').count()) === 31);
    await v.page.getByText('8 evaluations').waitFor();
    await v.inspect();
    await v.shot('use');
    await v.page.setViewportSize({ width: 360, height: 740 });
    await v.inspect();
    await v.shot('use-360');
    await part(v, 'Environments').click();
    await v.page.getByText('As in production').waitFor();
    await v.inspect();
    await v.shot('compare-360');
    await part(v, 'History').click();
    await v.page.getByRole('slider', { name: 'Version' }).press('Home');
    await v.heading('The flag at version 1').waitFor();
    await v.inspect();
    await v.shot('history-360');
  },

  'who copies while somebody else changes the flag sees what, and copies again': async (come) => {
    const v = await come({ refused: [404, 412] });
    // The page receives no events of other people's changes.
    await v.page.route('**/api/v1/flags/stream', (route) => route.fulfill({ status: 404 }));
    await begin(v);
    await v.open(`/t/${v.place.tenant}/production/flags/ranking?tab=environments`);
    await v.button('Copy from production').click();
    const dialog = v.page.getByRole('dialog');
    const copy = dialog.getByRole('button', { name: 'Copy', exact: true });
    await dialog.getByText('Rule “Staff”').waitFor();
    const rule = { name: 'Testers', conditions: [], serve: { value: 'odd' } };
    await v.call('PUT', '/api/v1/flags/ranking/rules', { rules: [rule] }, 'to try it');
    await copy.click();
    const told = dialog.getByRole('alert');
    await told.getByText('The flag has changed meanwhile').waitFor();
    await told.getByText('Rule “Testers”').waitFor();
    await told.getByText('to try it').waitFor();
    await v.inspect();
    await v.shot('compare-meanwhile');
    await copy.click();
    await dialog.waitFor({ state: 'detached' });
    await v.page.getByText('Only in production').waitFor({ state: 'detached' });
    const [{ environment, changes }] = await v.call('GET', '/api/v1/flags/ranking/history');
    if (environment !== 'development' || !JSON.stringify(changes).includes('Testers')) {
      throw new Error(JSON.stringify([environment, changes]));
    }
  },

  'a life of very many versions is gone through as far back as one likes': async (come) => {
    const v = await come({ refused: [404] }); // the flag at a time before it existed
    await begin(v);
    // The API's response for more versions than one page: the old ones are those that exist.
    await v.page.route('**/api/v1/flags/ranking/versions?*', async (route) => {
      const url = new URL(route.request().url());
      const offset = Number(url.searchParams.get('offset'));
      url.searchParams.set('offset', '0');
      const response = await route.fetch({ url: url.href });
      const real = await response.json();
      const many = Array.from({ length: 1000 }, (_, i) => ({ ...real[0], version: real.length + 1000 - i }));
      await route.fulfill({ json: offset ? real : many });
    });
    await v.open(`/t/${v.place.tenant}/production/flags/ranking?tab=history&version=1`);
    await v.heading('The flag at version 1').waitFor();
    await v.page.getByText(/^The slider begins at version \d+: there are older ones\./).waitFor();
    await v.field('At a time').fill('2001-01-01T00:00:00');
    await v.page.getByText('The slider does not reach so far back').waitFor();
    await v.inspect();
    await v.shot('history-many');
    await v.button('Show older versions').click();
    await v.button('Show older versions').waitFor({ state: 'detached' });
    await v.page.getByText('The flag did not exist at this time.').waitFor();
    await v.page.getByRole('slider', { name: 'Version' }).press('Home');
    await v.page.getByText('Version 1: Created', { exact: false }).first().waitFor();
  },
};
