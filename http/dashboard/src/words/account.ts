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
    text: 'You get a workspace of your own. If you were invited, sign up with the address that received the invitation.',
    hasAccount: 'Do you have an account?',
    taken: 'There is already an account with this address. Sign in, or reset the password.',
  },
  forgot: {
    title: 'A new password',
    text: 'You get a link by mail to set a new one.',
    button: 'Send the link',
    sent: (email: string) => `If there is an account of ${email}, the link is on its way. It is valid for an hour.`,
    back: 'Back to sign in',
  },
  reset: {
    title: 'A new password',
    button: 'Set the password',
    done: 'The password is set, and all sessions have ended. You can sign in now.',
    used: 'The link has been used or has expired. Request another one.',
  },
  verify: {
    title: 'Confirm your address',
    text: 'Enter the password that you signed up with.',
    button: 'Confirm',
    done: 'The address is confirmed.',
    used: 'The link has been used or has expired.',
    usedSignIn: 'The link has been used or has expired. Sign in to request another one.',
    resend: 'Mail the link again',
    sent: (email: string) => `The link is on its way to ${email}. Follow it, then try again.`,
    already: 'Your e-mail address is now verified. Try again.',
  },
  invitation: {
    title: 'An invitation',
    text: 'You have been invited to help run this service. Accept the invitation to take the role.',
    button: 'Accept',
    done: (role: string) => `Your role on the platform is ${platformRoles[role] ?? role} now.`,
  },
};
