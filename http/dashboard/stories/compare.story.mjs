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
    await v.page.getByRole('switch', { name: 'ranking in development', checked: true }).waitFor();
    const [last, before] = await v.call('GET', '/api/v1/flags/ranking/history?environment=development');
    if (last.action !== 'enabled' || before.action !== 'rules_changed' || before.reason !== 'proven') {
      throw new Error(JSON.stringify([last, before]));
    }

    await part(v, 'Use').click();
    const table = v.page.getByRole('table', { name: 'Evaluations in production' });
    await v.until('the evaluations are counted', async () => {
      await v.page.reload();
      return table.waitFor({ state: 'attached', timeout: 1000 }).then(
        () => true,
        () => false,
      );
    });
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
};
