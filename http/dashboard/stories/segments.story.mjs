// Segments: their rules and members, who is in them, and who uses them.
const dialog = (v) => v.page.getByRole('dialog');
const tab = (v, name) => v.page.getByRole('tab', { name, exact: true });

async function save(v) {
  await v.button('Save').click();
  await v.button('Save').waitFor({ state: 'detached' });
}

/** Waits for the answer of Who is in? */
const answered = (v, inIt) =>
  v.page
    .getByText(inIt ? 'This user is in the segment' : 'This user is not in the segment')
    .filter({ visible: true })
    .waitFor();

/** Fails unless the members of a list are these. */
async function haveMembers(v, key, list, want) {
  const members = await v.call('GET', `/api/v1/segments/${key}/members?list=${list}`);
  if (members.join() !== want.join()) throw new Error(`${list} has ${members}, want ${want}`);
}

export default {
  'a segment gets rules and members, and is used by a flag': async (come) => {
    const v = await come({ refused: [409, 422] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/flags', { key: 'checkout', type: 'boolean' });
    await v.call('POST', '/api/v1/flags/checkout/enable');
    await v.page.getByRole('navigation').getByRole('link', { name: 'Segments', exact: true }).click();
    await v.page.getByText('No segment yet').waitFor();
    await v.inspect();

    // It is created, and its page is opened.
    await v.button('New segment').click();
    await dialog(v).getByLabel('Name', { exact: true }).fill('Beta testers');
    await dialog(v).getByLabel('Tags', { exact: true }).fill('web');
    await v.inspect();
    await v.button('Create').click();
    await v.heading('beta-testers').waitFor();
    await v.page.getByText('Only its members are in the segment.').waitFor();
    await answered(v, false);
    await v.inspect();
    await v.shot('segment-new');

    // A rule, by keyboard.
    await v.button('Add rule').press('Enter');
    await v.field('Attribute').fill('email');
    await v.field('Operator').selectOption('ends with');
    await v.field('Values').fill('@acme.com');
    await v.page.keyboard.press('Enter');
    await v.page.getByText('No flag and no segment uses it yet.').waitFor();
    await v.page.getByText('is not in it now, and stays so').waitFor();
    await v.button('Add attribute').click();
    await v.field('Attribute name').fill('email');
    await v.field('Value of email').fill('ada@acme.com');
    await v.page.getByText('is not in it now, and will be').waitFor();
    await v.inspect();
    await save(v);
    await answered(v, true);
    await v.page.getByText('matched', { exact: true }).waitFor();
    await v.shot('segment-rules');

    // Members come from a list and a file.
    await tab(v, 'Members').click();
    await v.page.getByText('Nobody is included by name').waitFor();
    await v.page.getByText('stays in the history').waitFor();
    await v.button('Add members').click();
    await dialog(v).getByRole('button', { name: 'Add', exact: true, disabled: true }).waitFor();
    await dialog(v).getByLabel('Targeting keys', { exact: true }).fill('user-1, user-2\nuser-3\n');
    await dialog(v)
      .getByLabel('CSV file', { exact: true })
      .setInputFiles({
        name: 'members.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from('\ufeffuser-4\r\n"user,5"\r\n'),
      });
    await v.inspect();
    await v.shot('segment-members-add');
    await dialog(v).getByRole('button', { name: 'Add', exact: true }).click();
    await dialog(v).waitFor({ state: 'detached' });
    await v.page.getByText('beta-testers: 5 members added.').waitFor();
    await haveMembers(v, 'beta-testers', 'included', ['user,5', 'user-1', 'user-2', 'user-3', 'user-4']);
    await v.button('Remove user-3').click();
    await v.inspect();
    await dialog(v).getByRole('button', { name: 'Remove', exact: true }).click();
    await v.button('Remove user-3').waitFor({ state: 'detached' });
    await v.button('Remove members').click();
    await dialog(v).getByLabel('Targeting keys', { exact: true }).fill('user-4 , "user,5", user-9');
    await dialog(v).getByRole('button', { name: 'Remove', exact: true }).click();
    await v.page.getByText('2 members removed and 1 member unchanged').waitFor();
    await haveMembers(v, 'beta-testers', 'included', ['user-1', 'user-2']);
    await v.page.getByRole('radio', { name: 'Excluded: 0' }).click();
    await v.button('Add members').click();
    await dialog(v).getByLabel('Targeting keys', { exact: true }).fill('user-42');
    await dialog(v).getByRole('button', { name: 'Add', exact: true }).click();
    await v.button('Remove user-42').waitFor();
    await answered(v, false);
    await v.page.getByText('By the list of excluded members').filter({ visible: true }).waitFor();
    await v.field('Targeting key').fill('user-2');
    await answered(v, true);
    await v.inspect();
    await v.shot('segment-members');

    // A flag's rule refers to it.
    await v.open(`/t/${tenant}/production/flags/checkout`);
    await v.button('Add rule').click();
    await v.field('Operator').selectOption('is in segment');
    await v.field('Segments').fill('nobody');
    await v.page.keyboard.press('Enter');
    await v.page.getByText('There is no such segment.').waitFor();
    await v.field('Segments').fill('beta');
    await v.page.keyboard.press('Enter');
    await v.button('Remove beta-testers').waitFor();
    await v.page.getByText('not used yet').waitFor();
    await v.inspect();
    await v.shot('segment-picker');
    await save(v);
    await v.heading('user is in segment beta-testers').waitFor();
    await v.button('Edit rule user is in segment beta-testers').click();
    await v.page.getByText('used by 1 flag in 1 environment').waitFor();
    await v.page.getByText('step before it').or(v.page.getByText('steps before it')).waitFor();
    await v.link('Segment beta-testers').first().waitFor();
    await v.shot('segment-explained');

    // What others change in it is evaluated at once.
    await v.call('POST', '/api/v1/segments/beta-testers/members', { list: 'excluded', add: ['user-2'] });
    await v.page.getByText('By the list of excluded members').waitFor();

    // The segment knows it, says what a change does, and is not deleted.
    await v.open(`/t/${tenant}/production/segments?q=BETA&tag=web`);
    await v.link('1 flag or segment').click();
    await v.link('Rules of checkout in production').waitFor();
    await v.inspect();
    await tab(v, 'Rules').click();
    await v.button('Add rule').click();
    await v.field('Attribute').fill('$environment');
    await v.field('Values').fill('staging');
    await v.page.getByText('This changes what 1 flag serves in production.').waitFor();
    await v.button('Discard').click();
    await tab(v, 'Settings').click();
    await v.page.getByText('Used by 1 flag in 1 environment.').waitFor();
    await v.inspect();
    await v.button('Delete the segment').click();
    await dialog(v).getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog(v).getByText('The segment is used by the flag checkout in production.').waitFor();
    await v.inspect();
    await v.shot('segment-used');
    await v.page.keyboard.press('Escape');
    await dialog(v).waitFor({ state: 'detached' });
  },

  'a segment is changed, reverted, deleted and restored': async (come) => {
    const v = await come({ refused: [404, 412, 422] });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/segments', {
      key: 'staff',
      rules: [{ name: 'domain', conditions: [{ attribute: 'email', op: 'ends_with', values: ['@acme.com'] }] }],
    });
    await v.call(
      'POST',
      '/api/v1/segments/staff/members',
      { list: 'included', add: ['user-1', 'user-2'] },
      'first hires',
    );
    await v.open(`/t/${tenant}/production/segments/staff?tab=settings`);

    // Settings, and a change by others that does not conflict.
    await v.field('Name').fill('Our staff');
    await v.call('PATCH', '/api/v1/segments/staff', { description: 'Who works here' });
    await save(v);
    await v.page.getByText('Our staff').first().waitFor();

    // A conflict of rules is shown with who changed what.
    await tab(v, 'Rules').click();
    await v.button('Edit rule domain').click();
    await v.field('Values').fill('@acme.org');
    await v.page.keyboard.press('Enter');
    await v.call('PUT', '/api/v1/segments/staff/rules', { rules: [] });
    await v.button('Save').click();
    await v.heading('Another person has changed the same meanwhile').waitFor();
    await v.inspect();
    await v.button('Take theirs').click();
    await v.page.getByText('No rules').waitFor();

    // History, and back to the members and the rule.
    await tab(v, 'History').click();
    await v.page.getByText('Members added').waitFor();
    await v.page.getByText('first hires').waitFor();
    await v.page.getByText('user-1, user-2').waitFor();
    await v.link('Show version 3').click();
    await v.heading('The segment at version 3').waitFor();
    await v.page.getByText('This user was not in the segment').waitFor();
    await v.inspect();
    await v.shot('segment-history');
    await v.button('Revert').click();
    await dialog(v).getByText('The segment returns to this state').waitFor();
    await v.inspect();
    await dialog(v).getByRole('button', { name: 'Revert', exact: true }).click();
    await dialog(v).waitFor({ state: 'detached' });
    const { rules, name } = await v.call('GET', '/api/v1/segments/staff');
    if (name !== 'staff' || rules[0]?.name !== 'domain') throw new Error(JSON.stringify([name, rules]));

    await tab(v, 'Settings').click();
    await v.button('Delete the segment').click();
    await v.page.keyboard.press('Tab');
    await dialog(v).getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    await v.page.getByText('No segment yet').waitFor();
    await v.open(`/t/${tenant}/production/segments/staff`);
    await v.page.getByText('The segment was deleted').waitFor();
    await v.inspect();
    await v.button('Restore it').click();
    await dialog(v).getByRole('button', { name: 'Restore it', exact: true }).click();
    await tab(v, 'Members').click();
    await v.button('Remove user-1').waitFor();
  },

  'members that are refused are named, and long lists have pages': async (come) => {
    const v = await come({ refused: [422] });
    await v.signUp();
    const { tenant } = v.place;
    const add = Array.from({ length: 150 }, (_, i) => `user-${1000 + i}`);
    await v.call('POST', '/api/v1/segments', { key: 'many' });
    await v.call('POST', '/api/v1/segments/many/members', { list: 'included', add });
    await v.open(`/t/${tenant}/production/segments/many?tab=members`);
    await v.button('Remove user-1099').waitFor();
    await v.button('Show more members').click();
    await v.button('Remove user-1149').waitFor();
    await v.button('Show more members').waitFor({ state: 'detached' });

    await v.button('Add members').click();
    const [keys, file] = ['Targeting keys', 'CSV file'].map((name) => dialog(v).getByLabel(name, { exact: true }));
    const send = () => dialog(v).getByRole('button', { name: 'Add', exact: true }).click();
    await keys.fill(`user-1, ${'x'.repeat(300)}`);
    await send();
    await dialog(v)
      .getByText(/^Targeting key 2 must have at most/)
      .waitFor();
    await keys.fill('');
    for (const [text, refusal] of [
      [Buffer.from('user-2\nuser-3,Ada\n'), 'CSV file line 2: must have one column.'],
      [Buffer.from([0xff, 0xfe, 0x00]), 'CSV file must be UTF-8.'],
    ]) {
      await file.setInputFiles({ name: 'members.csv', mimeType: 'text/csv', buffer: text });
      await send();
      await dialog(v).getByText(refusal).waitFor();
    }
    await v.inspect();
    await haveMembers(v, 'many', 'included', add);
  },

  'a private segment is checked and forgotten': async (come) => {
    const v = await come();
    await v.signUp();
    const { tenant } = v.place;
    await v.open(`/t/${tenant}/production/segments`);
    await v.button('New segment').click();
    await dialog(v).getByLabel('Name', { exact: true }).fill('Patients');
    await dialog(v).getByLabel('Private members', { exact: true }).check();
    await v.inspect();
    await v.button('Create').click();
    await tab(v, 'Members').click();
    await v.page.getByText('only hashes of its members are kept').waitFor();
    await v.button('Add members').click();
    await dialog(v).getByLabel('Targeting keys', { exact: true }).fill('user-1, user-2');
    await dialog(v).getByRole('button', { name: 'Add', exact: true }).click();
    await v.page.getByRole('radio', { name: 'Included: 2' }).waitFor();
    await v.field('Targeting key').fill('user-1');
    await answered(v, true);
    await v.inspect();
    await v.shot('segment-private');

    await tab(v, 'Settings').click();
    await v.button('Forget the members').click();
    await v.inspect();
    await dialog(v).getByRole('button', { name: 'Forget', exact: true }).click();
    await dialog(v).waitFor({ state: 'detached' });
    await tab(v, 'Members').click();
    await v.page.getByText('Nobody is included by name').waitFor();
    await answered(v, false);
  },

  'problems of a flag are shown': async (come) => {
    const v = await come({ refused: [404] });
    await v.signUp();
    await v.call('POST', '/api/v1/flags', { key: 'cart', type: 'boolean' });
    // Only two nodes at once can make one.
    await v.page.route('**/api/v1/flags/cart', async (route) => {
      const response = await route.fetch();
      const problems = [{ code: 'segment_missing', key: 'gone', environment: 'production' }];
      await route.fulfill({ response, json: { ...(await response.json()), problems } });
    });
    await v.open(`/t/${v.place.tenant}/production/flags/cart`);
    await v.page.getByText('In production its rules refer to the segment gone, which does not exist').waitFor();
    await v.inspect();
    await v.link('Segment gone').click();
    await v.page.getByText('There is no such segment').waitFor();
    await v.inspect();
  },

  'segments fit a narrow window': async (come) => {
    const v = await come({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    await v.signUp();
    const { tenant } = v.place;
    await v.call('POST', '/api/v1/segments', {
      key: 'people-who-signed-up-for-early-versions-of-everything',
      tags: ['web', 'a-rather-long-tag-for-a-narrow-window'],
      rules: [{ conditions: [{ attribute: 'email', op: 'ends_with', values: ['@acme.com', '@example.org'] }] }],
    });
    await v.open(`/t/${tenant}/production/segments`);
    await v.link('people-who-signed-up-for-early-versions-of-everything').click();
    await v.heading('people-who-signed-up-for-early-versions-of-everything').waitFor();
    for (const name of ['Members', 'Used by', 'History', 'Settings', 'Rules']) {
      await tab(v, name).click();
      await v.inspect();
      await v.shot(`segment-narrow-${name}`);
    }
  },
};
