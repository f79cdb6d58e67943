// Pages say what people know things by, in place of ids and names of the API.
export default {
  'names stand in place of ids, and texts are true': async (come) => {
    const v = await come({ refused: [403] });
    await v.signUp();
    const { tenant } = v.place;
    const at = (page) => v.open(`/t/${tenant}/production/${page}`);
    const members = await v.call('GET', `/api/v1/tenants/${tenant}/users`);
    const owner = members.find(({ email }) => email === v.email).userId;
    const { id: projectId } = await v.call('POST', '/api/v1/projects', { name: 'Shop' });
    const { variations } = await v.call('POST', '/api/v1/flags', {
      key: 'cart',
      type: 'string',
      projectId,
      owner,
      flag_variations: ['red', 'blue', 'green'].map((name) => ({ name, value: name, weight: 1 })),
    });
    await v.call('PATCH', `/api/v1/flags/cart`, { owner: null });
    await v.call('PATCH', `/api/v1/flags/cart`, { owner });
    await v.call('PUT', '/api/v1/flags/cart/rules', {
      rules: [
        {
          conditions: [{ attribute: 'plan', op: 'in', values: ['pro'] }],
          serve: { variationId: variations[0].id },
        },
      ],
    });
    await v.call('PUT', '/api/v1/flags/cart/fallthrough', {
      serve: { rollout: variations.map(({ id }) => ({ variationId: id, weight: 1 })) },
    });

    const client = await v.call('POST', '/api/v1/oauth/clients', { name: 'backend', scopes: ['flags:evaluate'] });
    await v.call('POST', '/api/v1/evaluation-keys', { name: 'Web shop', kind: 'browser', environment: 'production' });
    await v.call('POST', '/api/v1/flags/cart/evaluate', { targetingKey: 'u', environment: 'production' });

    // What people read has no ids, and no names of the API's members. Code has both, and a client's id is copied.
    const id = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
    const member = /\b(?!targetingKey|flagledger)([a-z]+[A-Z]\w*|[a-z]+_[a-z]\w*)\b/;
    const hasNoIds = async (what, where = v.page.locator('body')) => {
      const text = await where.evaluate((node) => {
        const shown = node.cloneNode(true);
        for (const part of shown.querySelectorAll('code, pre, script, style')) part.remove();
        node.after(shown); // innerText needs it in the page
        const text = shown.innerText;
        shown.remove();
        return text;
      });
      const read = text.replaceAll(v.email, '').replaceAll(client.clientId, '');
      const found = id.exec(read) ?? member.exec(read);
      if (found) throw new Error(`${what} shows ${found[0]}: ${read.slice(found.index - 80, found.index + 60)}`);
    };
    for (const [page, ready] of Object.entries({
      flags: 'cart',
      'flags/cart?tab=overview': 'red',
      'flags/cart?tab=rules': 'Everyone else',
      'flags/cart?tab=environments': 'development',
      'flags/cart?tab=use': 'evaluation',
      'flags/cart?tab=history&version=2': 'Owner',
      playground: 'cart',
      cleanup: 'Nothing to clean up',
      projects: 'Shop',
      environments: 'production',
      'flag-rules': 'Flag rules',
      audit: 'cart',
      members: v.email,
      clients: 'backend',
      keys: 'Web shop',
      usage: 'Limits',
      billing: 'Features',
      settings: 'Settings',
      profile: v.email,
    })) {
      await at(page);
      await v.page.getByRole('main').getByText(ready).filter({ visible: true }).first().waitFor();
      await hasNoIds(page);
    }
    await at('flags/cart?tab=history');
    await v.page.getByText('Rules changed').first().waitFor();
    await v.page.getByText(v.email).first().waitFor();
    await hasNoIds('the history');

    // The trail names fields, members and variations.
    await at('audit');
    const created = v.page.locator('details', { hasText: 'changed flag cart' }).first();
    await created.locator('summary').click();
    await created.getByRole('rowheader', { name: 'Owner' }).waitFor();
    await created.getByRole('cell', { name: v.email }).waitFor();
    for (const what of ['changed the rules of', 'changed what everyone else gets of', 'created flag cart']) {
      const entry = v.page.locator('details', { hasText: what }).first();
      await entry.locator('summary').click();
      await entry
        .getByText(/red|"name": "blue"/)
        .first()
        .waitFor();
      const table = entry.getByRole('table');
      const found = id.exec((await table.innerText()).replaceAll(v.email, ''));
      if (found) throw new Error(`an entry that ${what} shows ${found[0]}`);
    }

    // An unnamed rule has its condition as a name, and a split is not called the same for everyone.
    await at('flags/cart?tab=rules');
    await v.page.getByText('The flag is off in production').waitFor();
    await v.button('Delete rule plan is one of pro').click();
    await v.page.getByText('No rules').waitFor();
    if (await v.page.getByText('Everyone gets the same').count()) throw new Error('a split is the same for everyone');
    await v.button('Discard').click();

    // The same split is no difference. Environments have one order, whichever is current.
    await v.call('PUT', '/api/v1/flags/cart/rules', { rules: [] });
    for (const here of ['production', 'development']) {
      await v.open(`/t/${tenant}/${here}/flags/cart?tab=environments`);
      await v.page.getByText(/^As in /).waitFor();
      if (await v.page.getByText('Differs', { exact: true }).count()) throw new Error('equal rules differ');
      for (const list of await v.page.getByRole('list', { name: 'Environments' }).all()) {
        const names = (await list.innerText()).match(/development|production/g);
        if (names.indexOf('production') > names.indexOf('development'))
          throw new Error(`the order is ${names} in ${here}`);
      }
    }

    await v.call('PATCH', '/api/v1/flags/cart', { status: 'archived' });
    await at('flags/cart?tab=rules');
    await v.page.getByText('The flag is archived: everyone gets the default value').waitFor();
    await v.inspect();

    // What cannot be deleted says why.
    await at('projects');
    await v.page.getByText('Delete its flags first').waitFor();
    if (!(await v.button('Delete Shop').isDisabled())) throw new Error('a project with flags can be deleted');
    await at('environments');
    await v.page.getByText('It cannot be deleted: calls without an environment use it.').waitFor();
    if (!(await v.button('Delete production').isDisabled())) throw new Error('production can be deleted');
    await v.inspect();

    // A tenant of others has no id as its name.
    await v.open('/t/00000000-0000-4000-8000-000000000001/production/members');
    await v.page.getByText('You are not a member of this tenant').first().waitFor();
    const named = await v.page.getByRole('combobox', { name: 'Tenant' }).inputValue();
    if (named !== 'Not your tenant') throw new Error(`the tenant is called ${named}`);
  },
};
