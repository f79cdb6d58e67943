import { randomUUID } from 'node:crypto';
import { password } from './visitor.mjs';

const { PRODUCTION_URL: url, CONTROL_URL: control } = process.env;

/** Opens the link of the newest of so many mails to an address. */
async function followMail(v, email, count) {
  let mails;
  await v.until(`mail ${count} to ${email} is there`, async () => {
    mails = await (await fetch(`${control}/mails?of=${encodeURIComponent(email)}`)).json();
    return mails.length >= count;
  });
  const link = mails[count - 1].Text.split('\n').find((line) => line.trim().startsWith(`${url}/`));
  await v.page.goto(link.trim());
}

/** Signs up, and confirms the address by the mailed link. */
async function join(v, email = `${randomUUID()}@example.com`, mailsBefore = 0) {
  await v.signUp(email);
  await followMail(v, email, mailsBefore + 1);
  await v.field('Password').fill(password);
  await v.button('Confirm').click();
  await v.page.getByText('The address is confirmed.').waitFor();
  await v.link('To the flags').click();
  await v.heading('Flags').waitFor();
}

const stories = {
  'an address is confirmed and a forgotten password replaced, each by the mailed link': async (come) => {
    const v = await come({ url, refused: [401, 403] });
    const email = `${randomUUID()}@example.com`;
    await v.signUp(email);
    await v.button('Create first-flag').click();
    await v.page.getByText('Your e-mail address is not verified yet.').waitFor();
    await followMail(v, email, 1);
    await v.heading('Confirm your address').waitFor();
    if (v.page.url().includes('token')) throw new Error(`the token stays in ${v.page.url()}`);
    await v.inspect();
    await v.field('Password').fill(password);
    let goOn;
    const held = new Promise((resolve) => (goOn = resolve));
    await v.page.route('**/api/v1/auth/refresh', async (route) => {
      await held;
      await route.continue();
    });
    const renewing = v.page.waitForRequest('**/api/v1/auth/refresh');
    await v.button('Confirm').click();
    await renewing;
    const confirmed = v.page.getByText('The address is confirmed.');
    if (await confirmed.count()) throw new Error('it is told before the session says so');
    goOn();
    await confirmed.waitFor();
    await v.link('To the flags').click();
    await v.button('Create first-flag').click();
    await v.switch('first-flag').waitFor();

    await v.button('Account').click();
    await v.page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await v.link('Forgot your password?').click();
    await v.field('Email').fill(email);
    await v.button('Send the link').click();
    await v.page.getByText('the link is on its way').waitFor();
    await v.inspect();
    await followMail(v, email, 2);
    await v.heading('A new password').waitFor();
    await v.inspect();
    await v.field('New password').fill('another horse');
    await v.button('Set the password').click();
    await v.page.getByText('The password is set').waitFor();
    await v.link('Sign in').click();
    await v.fillSignIn(email);
    await v.page.getByText('The e-mail address or the password is wrong.').waitFor();
    await v.field('Password').fill('another horse');
    await v.button('Sign in').click();
    await v.link('first-flag').waitFor();
  },

  'somebody who is invited by mail accepts, and has the role': async (come) => {
    const root = await come({ url });
    await join(root, 'root@example.com');
    await root.open('/platform/invitations');
    await root.button('Invite').click();
    const email = `${randomUUID()}@example.com`;
    await root.field('Email').fill(email);
    await root.button('Send the invitation').click();
    await root.button(`Revoke the invitation of ${email}`).waitFor();

    const invited = await come({ url, refused: [401, 403] });
    await join(invited, email, 1);
    if (await invited.link('Platform').count()) throw new Error('they have a role before they accept');
    await followMail(invited, email, 1);
    await invited.heading('An invitation').waitFor();
    await invited.inspect();
    await invited.button('Accept').click();
    await invited.page.getByText('Your role on the platform is').waitFor();
    await invited.link('To the flags').click();
    await invited.link('Platform').click();
    await invited.heading('Tenants').waitFor();
    await root.page.reload();
    await root.page.getByRole('row', { name: email }).getByText('Accepted').waitFor();
  },
};

// Only the tests have a service that sends mails to read.
export default url ? stories : {};
