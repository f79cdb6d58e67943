export default {
  'a chart says what a bar is, and marks changes of the flag': async (come) => {
    const v = await come();
    await v.signUp();
    await v.call('POST', '/api/v1/flags', {
      key: 'checkout',
      type: 'boolean',
      flag_variations: [
        { name: 'on', value: true, weight: 1 },
        { name: 'off', value: false, weight: 1 },
      ],
    });
    await v.call('POST', '/api/v1/flags/checkout/enable', undefined, 'launch');
    for (let i = 0; i < 8; i++) {
      await v.call('POST', '/api/v1/flags/checkout/evaluate', { targetingKey: `u${i}`, environment: 'production' });
    }
    await v.open(`/t/${v.place.tenant}/production/flags/checkout?tab=use`);
    await v.page.getByText('8 evaluations').waitFor();
    const marks = v.page.getByRole('link', { name: /Switched on, / });
    await marks.waitFor();
    await v.inspect();

    // No part is green, which is the color of on.
    const parts = await v.page.locator('figure ul rect').evaluateAll((all) => all.map((r) => getComputedStyle(r).fill));
    for (const fill of parts) {
      const [red, green, blue] = fill.match(/\d+/g).map(Number);
      if (green > red + 20 && green > blue + 20) throw new Error(`a part is green: ${fill}`);
    }
    const chart = v.page.locator('figure > svg').first();
    const box = await chart.boundingBox();
    await v.page.mouse.move(box.x + box.width - 8, box.y + box.height / 2);
    await v.page.locator('figure').getByText('Evaluations 8').waitFor();
    await v.shot('chart-tip');
    await marks.focus();
    await v.page.locator('figure').getByText(/Switched on, /).waitFor(); // prettier-ignore
    await v.inspect();
    await v.shot('chart-mark');
    await v.page.keyboard.press('Enter');
    await v.heading('The flag at version 2').waitFor();
  },
};
