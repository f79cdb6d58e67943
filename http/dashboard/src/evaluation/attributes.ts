import { parseExactly } from '../api/exact';
import type { Context } from '../queries/explanation';
import { oneLine } from '../words/common';

export type Attributes = NonNullable<Context['attributes']>;

/** Attributes that were typed as JSON; undefined where they are no object. */
export function attributesOf(text: string): Attributes | undefined {
  const value = parsed(text.trim() || '{}');
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Attributes) : undefined;
}

/** A value of an attribute as it is typed: a text stands without quotes, where it could not be taken for something else. */
export function textOfValue(value: unknown): string {
  return typeof value === 'string' && valueOfText(value) === value ? value : oneLine(value);
}

/** What was typed as a value of an attribute: what is JSON counts as such, all else as a text. */
export function valueOfText(text: string): unknown {
  const value = parsed(text);
  return value === undefined ? text : value;
}

function parsed(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
