import { parseExactly } from '../api/exact';
import type { Context } from '../queries/explanation';
import { oneLine } from '../words/common';

export type Attributes = NonNullable<Context['attributes']>;

/** Parses attributes typed as JSON; undefined unless they are an object. */
export function attributesOf(text: string): Attributes | undefined {
  const value = parsed(text.trim() || '{}');
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Attributes) : undefined;
}

/** Returns the text of an attribute's value. Strings have no quotes unless they would be ambiguous. */
export function textOfValue(value: unknown): string {
  return typeof value === 'string' && valueOfText(value) === value ? value : oneLine(value);
}

/** Parses the text of an attribute's value: as JSON if it is, else as a string. */
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
