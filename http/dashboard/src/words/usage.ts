import { isolated, plural } from './common';

/** The usage page. */
export const usage = {
  title: 'Usage',
  text: 'What this tenant has and uses, and the limits of its plan.',
  limits: 'Limits',
  plan: 'Plan and payment',
  limit: 'Limit',
  used: 'Used',
  flags: 'Flags',
  bytes: 'Size of all flags',
  written: 'Written by changes today',
  allBytes: 'Size of flags in all your free tenants',
  allWritten: 'Written today in all your free tenants',
  of: (used: string, limit: string) => `${used} of ${limit}`,
  counts: {
    evaluations: 'Evaluations this month',
    users: 'Members',
    requestsPerMinute: 'Requests a minute, at most',
  },
  evaluations: (environment: string) => `Evaluations in ${environment}`,
  period: 'Period',
  periods: { hour: '24 hours', day: '30 days' },
  none: 'No evaluations in this period',
  noneText: 'Evaluations show here within seconds.',
  total: (evaluations: number, prefetches: number) =>
    `${plural(evaluations, 'evaluation', 'evaluations')}, ${plural(prefetches, 'read', 'reads')} of all flags at once`,
  time: 'Time',
  count: 'Evaluations',
  reasons: {
    FALLTHROUGH: 'No rule matched',
    RULE_MATCH: 'By a rule',
    OFF: 'Off',
    PREREQUISITE_FAILED: 'Prerequisite not met',
    ARCHIVED: 'Archived',
  },
  most: 'Flags evaluated most',
  clients: 'Who evaluates most',
  flag: 'Flag',
  client: 'Client',
  seen: 'Last seen',
  /** Returns the name of a client. All people count as one, without an id. */
  evaluator: ({ clientId, name }: { clientId: string | null; name: string | null }) =>
    clientId === null ? 'People' : isolated(name ?? clientId),
};
