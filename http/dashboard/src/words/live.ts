import { isolated } from './common';

const people = new Intl.ListFormat('en');

const where = (environment: string | null | undefined) => (environment ? ` in ${environment}` : '');

/** Changes by others while a page is open. */
export const live = {
  by: (who: string, environment?: string | null) => `Changed by ${isolated(who)}${where(environment)}`,
  flag: (who: string[]) =>
    `${people.format(who.map(isolated))} ${who.length === 1 ? 'has' : 'have'} changed this flag.`,
  what: (action: string, environment?: string | null) => action + where(environment),
  draft: 'Your input is not lost.',
  seen: 'Seen',
};
