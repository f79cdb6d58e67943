const people = new Intl.ListFormat('en');

/** What others do while somebody looks. */
export const live = {
  by: (who: string) => `Changed by ${who}`,
  flag: (who: string[]) => `${people.format(who)} ${who.length === 1 ? 'has' : 'have'} changed this flag.`,
  what: (action: string, environment: string | null) => action + (environment ? ` in ${environment}` : ''),
  kept: 'What you are typing is kept.',
  seen: 'Seen',
};
