import { parseExactly } from '../../api/exact';
import { Failure } from '../../api/failure';
import { jsonError } from '../../api/jsonError';
import type { FlagInEnvironment, FlagType, Variation } from '../../queries/flag';
import { common, oneLine } from '../../words/common';
import { flag as words } from '../../words/flag';

/** The text of an empty value of each type, which is the API's default value. */
export const blankValues: Record<FlagType, string> = { boolean: 'false', string: '', number: '0', json: '{}' };

/** Returns the text of a value. Strings have no quotes. */
export function typed(type: FlagType, value: unknown): string {
  if (type === 'string') return typeof value === 'string' ? value : '';
  return type === 'json' ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

/** Parses a typed value. Throws invalid input as a failure of the field. */
export function valueOf(type: FlagType, text: string, field: string): unknown {
  if (type === 'string') return text;
  const error = type === 'json' ? jsonError(text) : undefined;
  if (error) throw new Failure(422, { errors: { [field]: common.notJSON(error) } });
  try {
    return parseExactly(text.trim());
  } catch {
    throw new Failure(422, { errors: { [field]: words.notNumber } });
  }
}

/** Returns the texts of the values that the rules and the fallthrough of an environment serve, each once. */
export function servedValues(
  { rules, fallthrough }: Pick<FlagInEnvironment, 'rules' | 'fallthrough'>,
  variations: Variation[],
): string[] {
  const valueOfVariation = (id: string) => variations.find((variation) => variation.id === id)?.value;
  const serves = [...rules.map(({ serve }) => serve), ...(fallthrough ? [fallthrough] : [])];
  const values = serves.flatMap(({ rollout, variationId, value }) => {
    if (rollout) return rollout.map((share) => valueOfVariation(share.variationId));
    return [variationId ? valueOfVariation(variationId) : value];
  });
  return [...new Set(values.filter((value) => value !== undefined).map(oneLine))];
}
