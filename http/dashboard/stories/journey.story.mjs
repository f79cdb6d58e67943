import { randomUUID } from 'node:crypto';
import { byKeyboard } from './keyboard.mjs';
import { password } from './visitor.mjs';

/** How somebody uses a page with a finger. */
const byTouch = {
  press: (wanted) => wanted.tap(),
  type: async (field, text) => {
    await field.tap();
    await field.fill(text);
  },
  choose: (field, option) => field.selectOption({ label: option }),
};

/** From the first visit to a flag that is rolled out, what it served before, and a revert. */
async function goTheJourney(v, { press, type, choose }) {
  const key = 'first-flag';
  const dialog = v.page.getByRole('dialog');
  const inDialog = (name) => dialog.getByRole('button', { name, exact: true });
  const read = () => v.call('GET', `/api/v1/flags/${key}`);

  await v.open();
  await press(v.link('Sign up'));
  await type(v.field('Email'), `${randomUUID()}@example.com`);
  await type(v.field('Password'), password);
  await press(v.button('Sign up'));
  await press(v.button('Create first-flag'));
  await press(v.switch(key), 'Space');
  await press(inDialog('Switch on'));
  await dialog.waitFor({ state: 'detached' });
  await v.until('it is on', async () => (await read()).enabled);
  await press(v.button('Try it here'));
  await v.page.getByText('true · FALLTHROUGH').waitFor();
  await press(v.button('Go to your flags'));

  await press(v.link(key));
  await v.heading(key).waitFor();
  await press(v.page.getByRole('tab', { name: 'Overview' }));
  for (const [name, weight, value] of [
    ['new', '20', 'true'],
    ['old', '80', 'false'],
  ]) {
    await press(v.button('Add variation'));
    await type(dialog.getByLabel('Name', { exact: true }), name);
    await choose(dialog.getByLabel('Value', { exact: true }), value);
    await type(dialog.getByLabel('Weight', { exact: true }), weight);
    await press(inDialog('Save'));
    await dialog.waitFor({ state: 'detached' });
  }
  await v.page.getByRole('img', { name: 'Share of a split: new 20%, old 80%' }).waitFor();
  const { variations } = await read();
  const split = variations.map((x) => `${x.value} ${x.weight}`).join();
  if (split !== 'true 20,false 80') throw new Error(`it is rolled out as ${split}`);
  await v.inspect();

  await press(v.page.getByRole('tab', { name: 'History' }));
  await press(v.link('Show version 1'));
  await v.heading('The flag at version 1').waitFor();
  await v.page.getByText('The flag is off', { exact: true }).waitFor();
  await v.page.getByText('What has changed since then').waitFor();
  await v.inspect();
  await press(v.button('Revert'));
  await type(dialog.getByLabel('Reason'), 'as it began');
  await press(inDialog('Revert'));
  await dialog.waitFor({ state: 'detached' });
  await v.switch(key, { checked: false }).waitFor();
  await v.page.getByText('as it began').first().waitFor();
  const then = await read();
  if (then.enabled || then.variations.length) throw new Error(`it is not as it began: ${JSON.stringify(then)}`);
}

export default {
  'from the first visit to a revert, by keyboard alone': async (come) => {
    const v = await come();
    await goTheJourney(v, byKeyboard(v.page));
  },

  'from the first visit to a revert, on a telephone': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
    await goTheJourney(v, byTouch);
  },
};
