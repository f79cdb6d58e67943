import type { SegmentUser } from '../../queries/segments';
import { segments as words } from '../../words/segments';

const distinct = (texts: (string | undefined)[]) => [...new Set(texts.filter((text) => text !== undefined))];

/** Returns the keys of the flags that use a segment, with the environments of their rules. */
export function flagsOf(users: SegmentUser[]): { key: string; environments: string[] }[] {
  return distinct(users.map(({ flagKey }) => flagKey)).map((key) => ({
    key,
    environments: distinct(users.filter(({ flagKey }) => flagKey === key).map(({ environment }) => environment)),
  }));
}

export const segmentsOf = (users: SegmentUser[]): string[] => distinct(users.map(({ segmentKey }) => segmentKey));

export const environmentsOf = (users: SegmentUser[]): string[] => distinct(users.map(({ environment }) => environment));

/** Returns how many flags use a segment in an environment. */
export const flagCount = (users: SegmentUser[], environment: string): number =>
  distinct(users.map((user) => (user.environment === environment ? user.flagKey : undefined))).length;

/** Returns who uses a segment in words: 3 flags in 2 environments. */
export const summary = (users: SegmentUser[]): string =>
  words.used.summary(flagsOf(users).length, environmentsOf(users).length, segmentsOf(users).length);
