import { randomUUID } from 'node:crypto';

export default {
  'a tenant that one was added to asks before it opens': async (come) => {
    const admin = await come({ refused: [409] });
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

    // Who left is added only by an invitation, which the dialog offers once the service has refused the address.
    await admin.open(`/t/${admin.place.tenant}/production/members`);
    await admin.button('Add member').click();
    const dialog = admin.page.getByRole('dialog');
    const left = dialog.getByText('This person left the tenant or declined to join.');
    await admin.field('Email').fill(email);
    await dialog.getByLabel('Role', { exact: true }).selectOption('viewer');
    await admin.button('Add').click();
    await left.waitFor();
    await admin.inspect();
    await admin.shot('invite-again');
    await admin.field('Email').fill('other@example.com');
    await left.waitFor({ state: 'detached' });
    await admin.button('Add').waitFor();
    await admin.field('Email').fill(email);
    await admin.button('Invite again').click();
    await dialog.waitFor({ state: 'detached' });
    await admin.page.getByText('Pending', { exact: true }).waitFor();
    await v.page.reload();
    await v.page.getByText(`invites you to ${name}`).waitFor();
    await v.inspect();
    await v.button('Accept').click();
    await v.page.getByText(`invites you to ${name}`).waitFor({ state: 'detached' });
    const found = (await admin.call('GET', members)).find((member) => member.email === email);
    if (found.role !== 'viewer' || found.pending) throw new Error(`the member is ${JSON.stringify(found)}`);

    // The inviter sees who has accepted, with a link to the members.
    await admin.until('the inviter is notified', async () => {
      const { notifications } = await admin.call('GET', '/api/v1/notifications');
      return notifications.some(({ type }) => type === 'invitation.accepted');
    });
    await admin.open(`/t/${admin.place.tenant}/production/flags`);
    await admin.page.getByRole('button', { name: /^Notifications, \d unread/ }).click();
    const inbox = admin.page.getByRole('region', { name: 'Notifications' });
    await inbox.getByText(`${email} has accepted it, and is a member now.`).first().waitFor();
    await admin.inspect();
    await inbox
      .getByRole('link', { name: `Your invitation to ${name} was accepted` })
      .first()
      .click();
    await admin.heading('Members').waitFor();
    await inbox.waitFor({ state: 'detached' });
  },
};
