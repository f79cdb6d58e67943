const people = new Intl.ListFormat('en');

const where = (environment: string | null | undefined) => (environment ? ` in ${environment}` : '');

/** What others do while somebody looks. */
export const live = {
  by: (who: string, environment?: string | null) => `Changed by ${who}${where(environment)}`,
  flag: (who: string[]) => `${people.format(who)} ${who.length === 1 ? 'has' : 'have'} changed this flag.`,
  what: (action: string, environment: string | null) => action + where(environment),
  kept: 'What you are typing is kept.',
  seen: 'Seen',
};
