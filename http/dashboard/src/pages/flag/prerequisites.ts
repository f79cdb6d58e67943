import { parseExactly } from '../../api/exact';
import type { FlagDetail, Variation } from '../../queries/flag';
import type { Prerequisite, ServedValue } from '../../queries/prerequisites';
import { valueOf } from './values';

/** A prerequisite as it is edited. What is served is in texts: a variation's id, or = and a value as JSON. */
export type PrerequisiteDraft = { flagKey: string; kind: 'serves' | 'off'; serves: string[] };

export type PrerequisitesDraft = { prerequisites: PrerequisiteDraft[] };

const textOf = ({ variationId, value }: ServedValue): string => variationId ?? `=${JSON.stringify(value)}`;

const served = (text: string): ServedValue =>
  text.startsWith('=') ? { value: parseExactly(text.slice(1)) } : { variationId: text };

export const draftOf = (list: Prerequisite[]): PrerequisitesDraft => ({
  prerequisites: list.map(({ flagKey, off, serves = [] }) => ({
    flagKey,
    kind: off ? 'off' : 'serves',
    serves: serves.map(textOf).sort(),
  })),
});

/** Returns the prerequisites to send. */
export const sentPrerequisites = ({ prerequisites }: PrerequisitesDraft): Prerequisite[] =>
  prerequisites.map(({ flagKey, kind, serves }) =>
    kind === 'off' ? { flagKey, off: true } : { flagKey, serves: serves.map(served) },
  );

/** Returns a new prerequisite. Of a boolean flag, true is required at first. */
export function newPrerequisite({ key, type, variations }: FlagDetail): PrerequisiteDraft {
  const on = variations.filter(({ value }) => value === true).map(({ id }) => id);
  const serves = type === 'boolean' ? (on.length ? on : ['=true']) : [];
  return { flagKey: key, kind: 'serves', serves };
}

/** A value to choose, with the text of the draft that stands for it. */
export type Choice = { text: string; variation?: Variation; value?: unknown };

/** Returns the values of a flag to choose from: its variations, or true and false, and those that are chosen. */
export function choicesOf(flag: FlagDetail | undefined, chosen: string[]): Choice[] {
  const variations = flag?.variations ?? [];
  const both = flag?.type === 'boolean' && !variations.length ? ['=true', '=false'] : [];
  const texts = [...new Set([...variations.map(({ id }) => id), ...both, ...chosen])];
  return texts.map((text) => ({
    text,
    variation: variations.find(({ id }) => id === text),
    value: text.startsWith('=') ? parseExactly(text.slice(1)) : undefined,
  }));
}

/** Returns the text of the draft for a typed value; undefined if it is none of the flag's type. */
export function typedValue(type: FlagDetail['type'], typed: string): string | undefined {
  try {
    return textOf({ value: valueOf(type, typed, 'value') });
  } catch {
    return;
  }
}
