import { plural } from './common';

/** The state of the service, for operators. */
export const service = {
  title: 'Service',
  text: 'Its current state, as one of its nodes sees it.',
  ok: 'Everything works.',
  models: {
    title: 'Read models',
    text: 'Every list is read from one of these. They are built from the facts, and can be rebuilt at any time.',
    columns: { name: 'Name', state: 'State', lag: 'Behind' },
    current: 'Up to date',
    building: 'Being built',
    behind: (facts: number, most: boolean, seconds: string) =>
      `${most ? 'at least ' : ''}${plural(facts, 'fact', 'facts')}, ${seconds}`,
    parked: (n: number) => `${plural(n, 'stream', 'streams')} left out`,
    rebuilt: (percent: number) => `Rebuilt to ${percent} %`,
    rebuiltHint: 'A rebuild is in progress, or was interrupted and continues when it is started again.',
  },
  jobs: {
    title: 'Jobs',
    none: 'No pending jobs.',
    lag: (facts: number, seconds: string) =>
      `No jobs have been created yet from ${plural(facts, 'fact', 'facts')}: ${seconds} behind.`,
    columns: { kind: 'Kind', state: 'State', count: 'Jobs', failing: 'Failing' },
    states: {
      available: 'Next in line',
      running: 'Running',
      scheduled: 'Scheduled',
      retryable: 'Waiting for a retry',
      pending: 'Waiting',
      cancelled: 'Cancelled',
      discarded: 'Discarded',
    },
  },
  store: 'Event store',
  engines: { postgres: 'Postgres', eventstore: 'EventStoreDB' },
  reachable: 'Reachable',
  unreachable: 'Unreachable',
  position: 'End of the log',
  database: 'Database',
  skew: 'Clock ahead of it by',
  snapshot: 'Flags in memory',

  ageOf: (seconds: string) => `${seconds} old`,
  leftOut: 'Facts left out',
  build: 'Running version',
  version: 'Version',
  buildNumber: 'Build',
  environment: 'Environment',
};

/** Formats a duration: 1.5 s, 4 min. */
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  if (size < 1) return `${Math.round(seconds * 1000)} ms`;
  if (size < 100) return `${Math.round(seconds * 10) / 10} s`;
  if (size < 6000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
