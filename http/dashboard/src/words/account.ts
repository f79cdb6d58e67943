import { platformRoles } from './common';

/** Signing up and in, and passwords. */
export const account = {
  email: 'Email',
  password: 'Password',
  newPassword: 'New password',
  name: 'Name',
  passwordHint: 'At least 8 characters',
  nameHint: 'As others see it',
  signIn: {
    title: 'Sign in',
    button: 'Sign in',
    forgot: 'Forgot your password?',
    noAccount: 'No account yet?',
    wrong: 'The e-mail address or the password is wrong.',
    ended: 'Your session has ended. Sign in again to go on where you were.',
  },
  signUp: {
    title: 'Sign up',
    button: 'Sign up',
    text: 'You get a workspace of your own. If somebody has invited you, sign up with the address that the invitation came to.',
    hasAccount: 'Do you have an account?',
    taken: 'There is an account with this address. Sign in, or have a new password mailed.',
  },
  forgot: {
    title: 'A new password',
    text: 'A link comes by mail with which you set a new one.',
    button: 'Send the link',
    sent: (email: string) => `If there is an account of ${email}, the link is on its way. It is good for an hour.`,
    back: 'Back to sign in',
  },
  reset: {
    title: 'A new password',
    button: 'Set the password',
    done: 'The password is set, and all sessions have ended. Sign in with it.',
    used: 'The link has been used or has expired. Have another one mailed.',
  },
  verify: {
    title: 'Confirm your address',
    text: 'Enter the password that you signed up with.',
    button: 'Confirm',
    done: 'The address is confirmed.',
    used: 'The link has been used or has expired.',
    usedSignIn: 'The link has been used or has expired. Sign in to have another one mailed.',
    resend: 'Mail the link again',
    sent: (email: string) => `The link is on its way to ${email}. Follow it, then try again.`,
    already: 'Your e-mail address is verified by now. Try again.',
  },
  invitation: {
    title: 'An invitation',
    text: 'You have been invited to help run this service. Accept the invitation to take the role.',
    button: 'Accept',
    done: (role: string) => `Your role on the platform is ${platformRoles[role] ?? role} now.`,
  },
};
