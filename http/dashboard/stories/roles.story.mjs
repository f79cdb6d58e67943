import { randomUUID } from 'node:crypto';

/** An admin with a tenant that has one of everything. */
async function furnish(admin) {
  await admin.signUp();
  const { id } = await admin.call('POST', '/api/v1/projects', { name: 'Shop' });
  await admin.call('POST', '/api/v1/flags', { key: 'color', type: 'string', projectId: id });
  await admin.call('POST', '/api/v1/flags/color/variations', { name: 'red', value: 'red' });
  await admin.call('POST', '/api/v1/flags/color/enable');
  await admin.call('PUT', '/api/v1/flags/color/rules', {
    rules: [{ name: 'Staff', conditions: [], serve: { value: 'red' } }],
  });
  await admin.call('POST', '/api/v1/flags', { key: 'gone', type: 'boolean' });
  await admin.call('DELETE', '/api/v1/flags/gone');
  await admin.call('POST', '/api/v1/segments', { key: 'staff', rules: [{ name: 'Domain', conditions: [] }] });
  await admin.call('POST', '/api/v1/segments/staff/members', { list: 'included', add: ['user-7'] });
  await admin.call('POST', '/api/v1/segments', { key: 'gone' });
  await admin.call('DELETE', '/api/v1/segments/gone');
  await admin.call('POST', '/api/v1/oauth/clients', { name: 'backend', scopes: ['flags:read'] });
  await admin.call('POST', '/api/v1/evaluation-keys', { name: 'Web shop', kind: 'browser', environment: 'production' });
}

async function join(admin, member, role) {
  const email = `${randomUUID()}@example.com`;
  await admin.call('POST', `/api/v1/tenants/${admin.place.tenant}/users`, { email, role });
  await member.signUp(email);
}

// The buttons that change something, by page.
const developers = {
  flags: ['New flag'],
  'flags/color?tab=overview': ['Add variation', 'Edit red', 'Delete red', 'Delete the flag'],
  'flags/color?tab=rules': ['Add rule', 'Edit rule Staff'],
  'flags/color?tab=environments': ['Copy from production'],
  'flags/color?tab=history&version=1': ['Revert'],
  'flags/gone': ['Restore it'],
  segments: ['New segment'],
  'segments/staff': ['Add rule', 'Edit rule Domain'],
  'segments/staff?tab=members': ['Add members', 'Remove members', 'Remove user-7'],
  'segments/staff?tab=history&version=1': ['Revert'],
  'segments/staff?tab=settings': ['Delete the segment'],
  'segments/gone': ['Restore it'],
  projects: ['New project', 'Edit Shop', 'Delete Shop'],
  settings: ['Show what would change'],
};
const admins = {
  environments: ['Add environment', 'Delete development', 'Move development up'],
  'flag-rules': ['Save'],
  members: ['Add member'],
  clients: ['New client', 'Rotate the secret of backend'],
  keys: ['New key', 'Edit Web shop', 'Rotate Web shop', 'Delete Web shop'],
  billing: ['Choose Standard'],
  settings: ['Delete the tenant'],
};
// What each page shows once it is loaded.
const read = {
  flags: (v) => v.link('color'),
  'flags/color?tab=overview': (v) => v.heading('Variations'),
  'flags/color?tab=rules': (v) => v.page.getByText('Staff').first(),
  'flags/color?tab=environments': (v) => v.heading('development'),
  'flags/color?tab=history&version=1': (v) => v.heading('What has changed since then'),
  'flags/gone': (v) => v.page.getByText('The flag was deleted'),
  segments: (v) => v.link('staff'),
  'segments/staff': (v) => v.page.getByText('Domain').first(),
  'segments/staff?tab=members': (v) => v.page.getByText('user-7'),
  'segments/staff?tab=use': (v) => v.page.getByText('Not used yet'),
  'segments/staff?tab=history&version=1': (v) => v.heading('What has changed since then'),
  'segments/staff?tab=settings': (v) => v.heading('Settings'),
  'segments/gone': (v) => v.page.getByText('The segment was deleted'),
  projects: (v) => v.link('Shop'),
  environments: (v) => v.link('development'),
  'flag-rules': (v) => v.heading('Owners'),
  members: (v) => v.page.getByText('You', { exact: true }),
  keys: (v) => v.page.getByText('Web shop'),
  billing: (v) => v.page.getByText('No subscription'),
  settings: (v) => v.heading('Name and contact'),
  playground: (v) => v.link('color'),
  cleanup: (v) => v.heading('Clean-up'),
  usage: (v) => v.heading('Usage'),
  audit: (v) => v.page.locator('details').first(),
};

/** Walks through the pages of the tenant: what may be done is offered, all else is not, and nothing is refused. */
async function walk(v, tenant, offered, withheld) {
  for (const [path, shown] of Object.entries(read)) {
    await v.open(`/t/${tenant}/production/${path}`);
    await shown(v).first().waitFor();
    for (const name of offered[path] ?? []) await v.button(name).first().waitFor();
    for (const name of withheld[path] ?? []) {
      if (await v.button(name).count()) throw new Error(`${path} offers ${name}`);
    }
    await v.inspect();
  }
}

export default {
  'viewers see all of it and are offered nothing that they may not do': async (come) => {
    const [admin, v] = [await come(), await come({ refused: [404] })]; // a flag is gone
    await furnish(admin);
    const { tenant } = admin.place;
    await join(admin, v, 'viewer');
    await walk(v, tenant, {}, { ...developers, ...admins, settings: [...developers.settings, ...admins.settings] });
    if (await v.page.getByRole('navigation').getByRole('link', { name: 'Clients' }).count())
      throw new Error('the navigation leads to the clients');

    await v.open(`/t/${tenant}/production/flags?new=flag`);
    await v.link('color').waitFor();
    await v.page.getByRole('row', { name: 'color' }).getByText('On', { exact: true }).waitFor();
    await v.shot('flags-viewer');
    if (await v.page.getByRole('switch').or(v.page.getByRole('checkbox')).or(v.page.getByRole('dialog')).count())
      throw new Error('flags can be switched, selected or made');
    await v.page.keyboard.press('Control+k');
    await v.page.getByRole('option', { name: 'Projects' }).waitFor();
    for (const name of ['New flag', 'New segment', 'Clients']) {
      if (await v.page.getByRole('option', { name, exact: true }).count()) throw new Error(`the palette has ${name}`);
    }

    await v.open(`/t/${tenant}/production/flags/color?tab=overview`);
    await v.heading('Settings').waitFor();
    await v.page.locator('dt:text-is("Permanent") + dd:text-is("No")').waitFor();
    if (await v.page.getByRole('switch').or(v.button('Save')).or(v.field('Name')).count())
      throw new Error('the flag can be changed');
    await v.shot('flag-viewer');
    await v.open(`/t/${tenant}/production/clients`);
    await v.page.getByText('Admins of the tenant see its clients').waitFor();
    if (await v.page.getByRole('alert').count()) throw new Error('a refusal is told');
    await v.inspect();
    await v.open(`/t/${tenant}/production/audit`);
    await v.button('Verify').click();
    await v.page.getByRole('dialog').getByLabel('Earlier checkpoint').waitFor();
    if (await v.page.getByRole('dialog').getByRole('checkbox').count()) throw new Error('they may read no facts');
  },

  'developers are offered what changes flags and projects, and admins all of it': async (come) => {
    const [admin, v] = [await come({ refused: [404] }), await come({ refused: [403, 404] })];
    await furnish(admin);
    const { tenant } = admin.place;
    await join(admin, v, 'developer');
    await walk(v, tenant, developers, admins);
    const offered = { ...developers, ...admins, settings: [...developers.settings, ...admins.settings] };
    await walk(admin, tenant, offered, {});
    await admin.open(`/t/${tenant}/production/clients`);
    for (const name of admins.clients) await admin.button(name).waitFor();

    // A person who became a viewer is told once, and no longer offered it.
    await v.open(`/t/${tenant}/development/flags`);
    await v.switch('color').waitFor();
    const members = await admin.call('GET', `/api/v1/tenants/${tenant}/users`);
    const { userId } = members.find(({ email }) => email === v.email);
    await admin.call('PATCH', `/api/v1/tenants/${tenant}/users/${userId}`, { role: 'viewer' });
    await v.switch('color').click();
    await v.page.getByRole('alert').getByText('does not allow it').waitFor();
    await v.switch('color').waitFor({ state: 'detached' });
  },

  'a viewer of a tenant without flags is not asked to make one': async (come) => {
    const [admin, v] = [await come(), await come()];
    await admin.signUp();
    await join(admin, v, 'viewer');
    await v.open(`/t/${admin.place.tenant}/production/flags`);
    await v.page.getByText('No flag yet').waitFor();
    if (await v.button('Create first-flag').or(v.button('New flag')).count()) throw new Error('they may make none');
    await v.inspect();
  },
};
