/** The person's own account. */
export const profile = {
  title: 'Profile',
  email: 'Email',
  id: 'ID',
  password: {
    title: 'Password',
    current: 'Current password',
    new: 'New password',
    hint: 'At least 8 characters. All your other sessions end.',
    button: 'Change the password',
    done: 'The password is changed, and all your other sessions have ended.',
  },
  sessions: {
    title: 'Sessions',
    text: 'Where you are signed in: this browser, and others. All of them end when you sign out everywhere.',
    here: 'Sign out here',
    everywhere: 'Sign out everywhere',
    ask: 'Enter your password. All sessions end, on every device, this one too.',
    password: 'Password',
  },
};
