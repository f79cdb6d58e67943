import { Acts } from './acts.mjs';

const { STALE_URL: url, CONTROL_URL: control } = process.env;

const stories = {
  'a flag that has settled shows the value that replaces it in code': async (come) => {
    const v = await come({ url, permissions: ['clipboard-read', 'clipboard-write'] });
    await v.signUp();
    await v.call('POST', '/api/v1/flags', {
      key: 'ranking',
      type: 'json',
      defaultValue: {},
      flag_variations: [
        { name: 'modern', value: { model: 'v2', size: 8 } },
        { name: 'classic', value: { model: 'v1', size: 5 } },
      ],
    });
    const [modern] = await v.call('GET', '/api/v1/flags/ranking/variations');
    await v.call('PUT', '/api/v1/flags/ranking/fallthrough', { serve: { variationId: modern.id } });
    await v.call('POST', '/api/v1/flags/ranking/enable');
    await v.call('POST', '/api/v1/flags', { key: 'forgotten', type: 'boolean' });
    await v.call('POST', '/api/v1/flags', { key: 'read', type: 'boolean', permanent: true });
    await v.open(`/t/${v.place.tenant}/production/cleanup`);
    await v.page.getByText('Nothing to clean up').waitFor();

    await fetch(`${control}/later`, { method: 'POST' });
    await v.call('POST', '/api/v1/flags/ranking/evaluate', { targetingKey: 'user-42' });
    await v.until('it has settled', async () => (await v.call('GET', '/api/v1/cleanup')).length === 2);
    await v.page.reload();
    const row = v.page.getByRole('row', { name: 'ranking' });
    await row.getByText('settled').waitFor();
    await row.getByText('{"model":"v2","size":8}', { exact: true }).waitFor();
    await row.getByText('modern', { exact: true }).waitFor();
    await v.page.getByRole('row', { name: 'forgotten' }).getByText('No longer evaluated').waitFor();
    await v.inspect();
    await v.shot('cleanup');
    await v.button('Copy the value of ranking').click();
    const copied = () => v.page.evaluate(() => navigator.clipboard.readText());
    await v.until('the value is copied', async () => (await copied()) === '{"model":"v2","size":8}');
    await v.page.setViewportSize({ width: 360, height: 740 });
    await v.inspect();
    await v.shot('cleanup-360');

    await v.link('ranking').click();
    await v.heading('ranking').waitFor();

    // One is archived in its row, and one among the selected.
    await v.page.setViewportSize({ width: 1280, height: 800 });
    await v.open(`/t/${v.place.tenant}/production/cleanup`);
    await v.field('Select ranking').check();
    const acts = new Acts();
    await acts.click(v.button('Archive forgotten'));
    const dialog = v.page.getByRole('dialog');
    await v.heading('Archive forgotten?').waitFor();
    await v.inspect();
    await acts.click(dialog.getByRole('button', { name: 'Archive' }));
    await acts.most(2);
    await v.link('forgotten').waitFor({ state: 'detached' });
    await dialog.waitFor({ state: 'detached' });
    await v.until('the page has the focus', () => v.page.evaluate(() => document.activeElement.id === 'page'));
    await v.page.getByText('1 selected').waitFor();
    await v.inspect();
    await v.shot('cleanup-selected');
    await v.button('Archive').click();
    await dialog.getByRole('button', { name: 'Archive' }).click();
    await v.link('ranking').waitFor({ state: 'detached' });
    for (const key of ['ranking', 'forgotten']) {
      const { status } = await v.call('GET', `/api/v1/flags/${key}`);
      if (status !== 'archived') throw new Error(`${key} is ${status}`);
    }

    // A flag that is live without an evaluation of its own says why.
    const read = () => v.open(`/t/${v.place.tenant}/production/flags/read?tab=overview`);
    await read();
    await v.page.getByText('Live', { exact: true }).waitFor();
    await v.page.getByText('Never', { exact: true }).waitFor();
    await v.call('POST', '/ofrep/v1/evaluate/flags', { context: { targetingKey: 'user-42' } });
    await v.until('it is read', async () => (await v.call('GET', '/api/v1/flags/read')).lastPrefetchedAt);
    await read();
    await v.page.getByText('Read with all flags only').waitFor();
  },
};

export default url ? stories : {};
