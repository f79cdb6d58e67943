import { password } from './visitor.mjs';

const emulator = process.env.FIREBASE_EMULATOR;

/** The code of the link with which Firebase has somebody set a new password. */
async function resetCode(email) {
  const answer = await fetch(`http://${emulator}/emulator/v1/projects/demo-flagledger/oobCodes`, {
    headers: { Authorization: 'Bearer owner' },
  });
  const { oobCodes } = await answer.json();
  return oobCodes.findLast((code) => code.email === email && code.requestType === 'PASSWORD_RESET')?.oobCode;
}

const stories = {
  'people of Firebase sign up, in and out, and set a new password': async (come) => {
    const v = await come({ refused: [401, 409, 422] });
    const signIn = async (chosen) => {
      await v.field('Email').fill(v.email);
      await v.field('Password').fill(chosen);
      await v.button('Sign in').click();
    };
    const signOut = async () => {
      await v.button('Account').click();
      await v.page.getByRole('menuitem', { name: 'Sign out' }).click();
      await v.heading('Sign in').waitFor();
    };
    await v.signUp();
    await v.page.reload();
    await v.heading('Flags').waitFor();
    await signOut();
    await v.open('/sign-up');
    await v.fillSignUp(v.email);
    await v.page.getByText('There is already an account with this address.').waitFor();
    await v.open('/sign-in');
    await signIn('wrong horse');
    await v.page.getByText('The e-mail address or the password is wrong.').waitFor();
    await v.inspect();
    await signIn(password);
    await v.heading('Flags').waitFor();
    await signOut();

    await v.link('Forgot your password?').click();
    await v.field('Email').fill(v.email);
    await v.button('Send the link').click();
    await v.page.getByText(`If there is an account of ${v.email}, the link is on its way.`).waitFor();
    await v.inspect();
    await v.until('the link is mailed', () => resetCode(v.email));
    const code = await resetCode(v.email);
    await v.open(`/reset-password#token=${encodeURIComponent(code)}`);
    await v.field('New password').fill('another horse');
    await v.button('Set the password').click();
    await v.page.getByText('The password is set').waitFor();
    await v.link('Sign in').click();
    await signIn(password);
    await v.page.getByText('The e-mail address or the password is wrong.').waitFor();
    await signIn('another horse');
    await v.heading('Flags').waitFor();
    await v.open(`/reset-password#token=${encodeURIComponent(code)}`);
    await v.field('New password').fill('a third horse');
    await v.button('Set the password').click();
    await v.page.getByText('The link has been used or has expired.').waitFor();
  },
};

export default emulator ? stories : {};
