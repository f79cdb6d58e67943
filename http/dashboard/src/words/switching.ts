/** Switching flags, and its undo. */
export const switching = {
  label: (key: string, environment: string) => `Switch ${key} on in ${environment}`,
  question: (on: boolean, key: string, environment: string) => ({
    title: `Switch ${key} ${on ? 'on' : 'off'} in ${environment}?`,
    text: on ? 'Its rules and variations decide what everyone gets.' : 'Everyone gets its default value.',
    button: on ? 'Switch on' : 'Switch off',
  }),
  done: (on: boolean, key: string, environment: string) => `${key}: ${on ? 'enabled' : 'disabled'} in ${environment}.`,
  undone: (on: boolean, key: string, environment: string) =>
    `${key}: ${on ? 'disabled' : 'enabled'} again in ${environment}.`,
  changed: (key: string, environment: string) =>
    `${key} was not switched back in ${environment}: the flag has changed meanwhile, and stays as it is now.`,
  notUndone: (key: string, environment: string, why: string) =>
    `${key} was not switched back in ${environment}. ${why}`,
  more: 'See what has changed',
};
