import { randomUUID } from 'node:crypto';

export default {
  'a tenant that one was added to asks before it opens': async (come) => {
    const admin = await come();
    await admin.signUp();
    const tenant = await admin.call('POST', '/api/v1/tenants', { name: 'Northwind' });
    const members = `/api/v1/tenants/${admin.place.tenant}/users`;
    const { name } = await admin.call('GET', `/api/v1/tenants/${admin.place.tenant}`);
    const email = `${randomUUID()}@example.com`;
    await admin.call('POST', members, { email, role: 'developer' });
    if (!tenant.id) throw new Error('no tenant');

    const v = await come();
    await v.signUp(email);
    const question = v.page.getByText(`added you to ${name}`);
    await question.waitFor();
    if (v.page.url().includes(admin.place.tenant)) throw new Error('the tenant is open before the answer');
    await v.inspect();
    await v.button('Leave').click();
    await question.waitFor({ state: 'detached' });
    await v.inspect();

    await admin.call('POST', members, { email, role: 'viewer', invitation: true });
    await v.page.reload();
    await v.page.getByText(`invites you to ${name}`).waitFor();
    await v.inspect();
    await v.button('Accept').click();
    await v.page.getByText(`invites you to ${name}`).waitFor({ state: 'detached' });
    const found = (await admin.call('GET', members)).find((member) => member.email === email);
    if (found.role !== 'viewer' || found.pending) throw new Error(`the member is ${JSON.stringify(found)}`);
  },
};
