// Journeys of daily work, by mouse and by keyboard alone, each with the most acts that it may take. Acts count from the page on which the wish arises.
// cleanup.story.mjs has another one, since only its service has flags to clean up.
import { randomUUID } from 'node:crypto';
import { Acts } from './acts.mjs';

const flag = '/api/v1/flags/checkout';

/** Signs up, creates the flag checkout, and opens a page of the tenant. */
async function begin(come, page, { environment = 'production', ...options } = {}) {
  const v = await come(options);
  await v.signUp();
  await v.call('POST', '/api/v1/flags', { key: 'checkout', type: 'boolean' });
  await v.open(`/t/${v.place.tenant}/${environment}/${page}`);
  return v;
}

const tab = (v, name) => v.page.getByRole('tab', { name, exact: true });
const dialog = (v) => v.page.getByRole('dialog');
const inDialog = (v, name) => dialog(v).getByRole('button', { name, exact: true });

const journeys = {
  'find a flag among 300: 3, from the list of flags': async (come, newActs) => {
    const v = await begin(come, 'flags');
    const make = (key, name) => v.call('POST', '/api/v1/flags', { key, name, type: 'boolean' });
    await make('kill-refunds', 'Stop all refunds');
    for (let i = 0; i < 300; i += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, n) => make(`refund-${i + n}`, `Refund ${i + n}`)));
    }
    await v.page.reload();
    await v.page.getByText('302 flags').waitFor();
    const acts = newActs(v);
    await acts.fill(v.field('Search'), 'refund kill');
    await acts.click(v.link('kill-refunds'));
    await v.heading('kill-refunds').waitFor();
    await acts.most(3);
  },

  'create a flag: 5, from the list of flags': async (come, newActs) => {
    const v = await begin(come, 'flags');
    const acts = newActs(v);
    await acts.click(v.button('New flag'));
    await acts.fill(v.field('Name'), 'Free shipping');
    await acts.choose(v.field('Type'), 'number');
    await acts.fill(v.field('Default value'), '50');
    await acts.click(inDialog(v, 'Create'));
    await v.heading('free-shipping').waitFor();
    const { type, defaultValue } = await v.call('GET', '/api/v1/flags/free-shipping');
    if (type !== 'number' || defaultValue !== 50) throw new Error(`it is a ${type} ${defaultValue}`);
    await acts.most(5);
  },

  'target a user: 6, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags/checkout', { refused: [412] }); // the page may save before it hears of the switch
    await v.call('POST', `${flag}/enable`);
    const acts = newActs(v);
    await acts.click(v.button('Target users'));
    await acts.fill(v.field('Targeting keys'), 'user-42');
    await acts.press(v.field('Targeting keys'), 'Enter');
    await acts.choose(v.field('Serve'), 'on');
    await acts.fill(v.field('Reason'), 'to try it');
    await acts.click(v.button('Save'));
    await v.button('Save').waitFor({ state: 'detached' });
    const { rules } = await v.call('GET', `${flag}/rules`);
    const { value } = await v.call('POST', `${flag}/evaluate?preview=true`, { targetingKey: 'user-42' });
    if (rules.length !== 1 || value !== true) throw new Error(`they get ${value} of ${JSON.stringify(rules)}`);
    await acts.most(6);
  },

  'roll out a new boolean flag to 10 %: 6, then to 50 %: 3, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags/checkout');
    const share = async () => (await v.call('GET', `${flag}/rules`)).fallthrough?.rollout.map(({ weight }) => weight);
    const acts = newActs(v);
    await acts.choose(v.field('Everyone else gets'), 'A percentage rollout');
    await acts.fill(v.field('Weight of on'), '10');
    await acts.click(v.button('Save'));
    await v.button('Save').waitFor({ state: 'detached' });
    await acts.click(v.page.getByRole('switch', { name: /production/ }).first());
    await acts.fill(dialog(v).getByLabel('Reason'), 'the first users');
    await acts.click(inDialog(v, 'Switch on'));
    await dialog(v).waitFor({ state: 'detached' });
    await v.until('it is on', async () => (await v.call('GET', flag)).enabled);
    if (`${await share()}` !== '10,90') throw new Error(`it is rolled out as ${await share()}`);
    await acts.most(6);

    const later = newActs(v);
    await later.fill(v.field('Weight of on'), '50');
    await later.fill(v.field('Reason'), 'it works');
    await later.click(v.button('Save'));
    await v.button('Save').waitFor({ state: 'detached' });
    if (`${await share()}` !== '50,50') throw new Error(`it is rolled out as ${await share()}`);
    await later.most(3);
  },

  'copy staging to production: 4, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags');
    const { tenant } = v.place;
    await v.call('POST', `/api/v1/tenants/${tenant}/environments`, { environment: 'staging' });
    const rules = [
      { name: 'Staff', conditions: [{ attribute: 'plan', op: 'in', values: ['staff'] }], serve: { value: true } },
    ];
    await v.call('PUT', `${flag}/rules`, { rules }, undefined, 'staging');
    await v.open(`/t/${tenant}/production/flags/checkout`);
    const acts = newActs(v);
    await acts.click(tab(v, 'Environments'));
    await acts.click(v.button('Copy from staging'));
    await acts.fill(dialog(v).getByLabel('Reason'), 'proven in staging');
    await acts.click(inDialog(v, 'Copy'));
    await dialog(v).waitFor({ state: 'detached' });
    const copied = await v.call('GET', `${flag}/rules`);
    if (copied.rules[0]?.name !== 'Staff') throw new Error(`production has ${JSON.stringify(copied)}`);
    await acts.most(4);
  },

  'who changed what and why: 2, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags');
    await v.call('POST', `${flag}/enable`, undefined, 'launch day');
    await v.open(`/t/${v.place.tenant}/production/flags/checkout`);
    const acts = newActs(v);
    await acts.click(tab(v, 'History'));
    const entry = v.page.getByRole('listitem').filter({ hasText: 'Switched on' }).first();
    await entry.getByText(v.email).waitFor();
    await entry.getByText('launch day').waitFor();
    await entry.getByText('production').first().waitFor();
    await acts.most(2);
  },

  'revert a change: 5, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags');
    await v.call('PATCH', flag, { description: 'wrong' });
    await v.open(`/t/${v.place.tenant}/production/flags/checkout`);
    const acts = newActs(v);
    await acts.click(tab(v, 'History'));
    await acts.click(v.link('Show version 1'));
    await acts.click(v.button('Revert'));
    await acts.fill(dialog(v).getByLabel('Reason'), 'a mistake');
    await acts.click(inDialog(v, 'Revert'));
    await dialog(v).waitFor({ state: 'detached' });
    const { description } = await v.call('GET', flag);
    if (description) throw new Error(`the description is ${description}`);
    await acts.most(5);
  },

  'see the flag as it was at a time: 3, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags');
    const { createdAt } = await v.call('GET', flag);
    await v.until('a second is over', () => Date.now() > Date.parse(createdAt) + 2000);
    await v.call('POST', `${flag}/enable`);
    await v.open(`/t/${v.place.tenant}/production/flags/checkout`);
    const acts = newActs(v);
    await acts.click(tab(v, 'History'));
    const time = new Date(Date.parse(createdAt) + 1000);
    const local = new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
    await acts.fill(v.field('At a time'), local);
    await v.heading('The flag at version 1').waitFor();
    await v.page.getByText('The flag is off', { exact: true }).waitFor();
    await acts.most(3);
  },

  'explain what a user gets: 4, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags');
    const conditions = [{ attribute: 'plan', op: 'in', values: ['pro'] }];
    await v.call('PUT', `${flag}/rules`, { rules: [{ name: 'Paying', conditions, serve: { value: true } }] });
    await v.call('POST', `${flag}/enable`);
    await v.open(`/t/${v.place.tenant}/production/flags/checkout`);
    const acts = newActs(v);
    await acts.fill(v.field('Targeting key'), 'user-7');
    await acts.click(v.button('Add attribute'));
    await acts.fill(v.field('Attribute name'), 'plan');
    await acts.fill(v.field('Value of plan'), 'pro');
    await v.page.getByText('A rule matched').first().waitFor();
    await acts.most(4);
  },

  'invite a colleague: 4, from the members': async (come, newActs) => {
    const v = await begin(come, 'members');
    const email = `${randomUUID()}@example.com`;
    const acts = newActs(v);
    await acts.click(v.button('Add member'));
    await acts.fill(v.field('Email'), email);
    await acts.choose(dialog(v).getByLabel('Role', { exact: true }), 'developer');
    await acts.click(inDialog(v, 'Add'));
    await v.page.getByRole('row').filter({ hasText: email }).getByText('Pending').waitFor();
    await acts.most(4);
  },

  'connect an SDK: 4, from the page of the flag': async (come, newActs) => {
    const v = await begin(come, 'flags/checkout', { permissions: ['clipboard-read', 'clipboard-write'] });
    const acts = newActs(v);
    await acts.click(v.button('Use in code'));
    await acts.choose(dialog(v).getByLabel('Language'), 'Python');
    await acts.click(inDialog(v, 'Create a key'));
    const program = dialog(v).getByRole('figure', { name: 'Program in Python' });
    await program.getByText(/Bearer sk_/).waitFor();
    await acts.click(program.getByRole('button', { name: 'Copy' }));
    const copied = await v.page.evaluate(() => navigator.clipboard.readText());
    if (!copied.includes('get_boolean_value("checkout"')) throw new Error(`the copied program is ${copied}`);
    await acts.most(4);
  },

  'resolve a conflict: 3, from the news of it': async (come, newActs) => {
    const v = await begin(come, 'flags/checkout?tab=overview', { refused: [412] });
    await v.field('Description').fill('mine');
    await v.call('PATCH', flag, { description: 'theirs' }, 'another wish');
    await v.page.getByText('another wish').first().waitFor();
    const acts = newActs(v);
    await acts.click(v.button('Keep mine'));
    await acts.fill(v.field('Reason'), 'mine is newer');
    await acts.click(v.button('Save'));
    await v.button('Save').waitFor({ state: 'detached' });
    const { description } = await v.call('GET', flag);
    if (description !== 'mine') throw new Error(`the description is ${description}`);
    await acts.most(3);
  },
};

export default Object.fromEntries(
  Object.entries(journeys).flatMap(([title, journey]) => [
    [title, (come) => journey(come, () => new Acts())],
    [`${title}, by keyboard`, (come) => journey(come, ({ page }) => new Acts(page))],
  ]),
);
