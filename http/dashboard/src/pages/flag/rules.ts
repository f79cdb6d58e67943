import { parseExactly } from '../../api/exact';
import { Failure } from '../../api/failure';
import type { FlagType, Variation } from '../../queries/flag';
import type { Condition, NewRule, Operator, Rule, Rules, Serve } from '../../queries/rules';
import type { ChangedField } from '../../words/changes';
import { rules as words } from '../../words/rules';
import { typed, valueOf } from './values';

/** A share of a rollout, as it is typed. */
export type WeightDraft = { variationId: string; weight: string };

/** What is served, as it is typed. */
export type ServeDraft = {
  kind: 'variation' | 'rollout' | 'value';
  variationId: string;
  value: string;
  /** The shares of a rollout, in their order: who gets what hangs on it (docs/bucketing.md). Values without one are not here. */
  weights: WeightDraft[];
  bucketBy: string;
};

/** A condition as it is typed. Its values are texts of JSON, so that numbers keep their digits. */
export type ConditionDraft = { id: string; attribute: string; op: Operator; values: string[]; negate: boolean };

export type RuleDraft = {
  /** Its own, or one by which the page knows it until it has one. */
  id: string;
  name: string;
  conditions: ConditionDraft[];
  serve: ServeDraft;
};

export type RulesDraft = { rules: RuleDraft[]; fallthrough: ServeDraft | null };

/** What operators take: nothing, numbers, texts, or any of both. */
export function takes(op: Operator): 'none' | 'numbers' | 'any' | 'texts' {
  if (op === 'exists') return 'none';
  if (op === 'in') return 'any';
  return ['gt', 'gte', 'lt', 'lte'].includes(op) ? 'numbers' : 'texts';
}

export function draftOfRules({ rules, fallthrough }: Rules, type: FlagType): RulesDraft {
  return {
    rules: rules.map((rule) => ({
      id: rule.id,
      name: rule.name,
      conditions: rule.conditions.map((condition, i) => draftOfCondition(condition, `${rule.id} ${i}`)),
      serve: draftOfServe(rule.serve, type),
    })),
    fallthrough: fallthrough && draftOfServe(fallthrough, type),
  };
}

function draftOfCondition({ attribute, op, values, negate }: Condition, id: string): ConditionDraft {
  return { id, attribute, op, values: values.map((value) => JSON.stringify(value)), negate };
}

const blanks: Record<FlagType, unknown> = { boolean: true, string: '', number: 0, json: {} };

// It is of the serve alone: values that come and go are no change of it.
function draftOfServe(serve: Serve, type: FlagType): ServeDraft {
  return {
    kind: serve.rollout ? 'rollout' : serve.variationId ? 'variation' : 'value',
    variationId: serve.variationId ?? '',
    value: typed(type, serve.value === undefined ? blanks[type] : serve.value),
    weights: (serve.rollout ?? []).map(({ variationId, weight }) => ({ variationId, weight: String(weight) })),
    bucketBy: serve.bucketBy === 'targetingKey' ? '' : (serve.bucketBy ?? ''),
  };
}

/** What a new rule serves: the first value, or where there is none, one that is typed. */
export function newServe(type: FlagType, variations: Variation[]): ServeDraft {
  const [first] = variations;
  return draftOfServe(first ? { variationId: first.id } : { value: blanks[type] }, type);
}

// randomUUID is not there over plain HTTP.
const newID = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

export function newRule(type: FlagType, variations: Variation[]): RuleDraft {
  const serve = newServe(type, variations);
  return { id: newID(), name: '', conditions: [newCondition()], serve };
}

export const newCondition = (): ConditionDraft => ({
  id: newID(),
  attribute: '',
  op: 'in',
  values: [],
  negate: false,
});

/** Whether all conditions say what they ask. */
export const isFinished = ({ conditions }: RuleDraft): boolean =>
  conditions.every(({ attribute, op, values }) => attribute.trim() && (takes(op) === 'none' || values.length));

export type Problems = Record<string, string>;

/** What is sent for a draft. Rules that are not there yet, or not any more, are new. What cannot be sent is thrown as a failure of the fields, named as the API does. */
export function sentRules(drafts: RuleDraft[], there: RuleDraft[], type: FlagType): NewRule[] {
  const known = new Map(there.map((rule) => [rule.id, rule]));
  const errors: Problems = {};
  const rules = drafts.map((rule, i) => {
    const was = known.get(rule.id);
    return {
      ...(was && { id: rule.id }),
      name: trimTyped(rule.name, was?.name),
      conditions: rule.conditions.map((condition) =>
        sentCondition(
          condition,
          was?.conditions.find(({ id }) => id === condition.id),
        ),
      ),
      serve: caught(errors, () => sentServe(rule.serve, type, `rules[${i}].serve`, was?.serve)) ?? {},
    };
  });
  if (Object.keys(errors).length) throw new Failure(422, { errors });
  return rules;
}

function caught<T>(errors: Problems, make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    Object.assign(errors, error.fields);
  }
}

// A text without the blanks around it, unless it is as it was: the API takes blanks, and they count.
const trimTyped = (text: string, was: string | undefined): string => (text === was ? text : text.trim());

export function sentCondition({ attribute, op, values, negate }: ConditionDraft, was?: ConditionDraft): Condition {
  return {
    attribute: trimTyped(attribute, was?.attribute),
    op,
    values: takes(op) === 'none' ? [] : values.map((value) => parseExactly(value) as string),
    negate,
  };
}

/** Returns what is sent of a serve. Shares that are typed as 0 are omitted; shares that were 0 before are sent unchanged. */
export function sentServe(serve: ServeDraft, type: FlagType, field: string, was?: ServeDraft): Serve {
  if (serve.kind === 'variation') return { variationId: serve.variationId };
  if (serve.kind === 'value') return { value: valueOf(type, serve.value, `${field}.value`) };
  const zeros = new Set(was && zerosOf(was));
  const rollout = sharesOf(serve).filter(({ variationId, weight }) => weight !== 0 || zeros.has(variationId));
  if (rollout.every(({ weight }) => weight === 0))
    throw new Failure(422, { errors: { [`${field}.rollout`]: words.sumZeroField } });
  const bad = rollout.find(({ weight }) => Number.isNaN(weight));
  if (bad) throw new Failure(422, { errors: { [`${field}.rollout`]: words.notWeight } });
  return { rollout, bucketBy: trimTyped(serve.bucketBy, was?.bucketBy) || 'targetingKey' };
}

const zerosOf = (serve: ServeDraft) =>
  sharesOf(serve).flatMap(({ variationId, weight }) => (weight === 0 ? [variationId] : []));

/** The shares of a rollout. A weight that is no number is NaN. */
export function sharesOf({ weights }: ServeDraft): { variationId: string; weight: number }[] {
  return weights.map(({ variationId, weight }) => ({ variationId, weight: weight.trim() === '' ? 0 : Number(weight) }));
}

/** What was typed as a value of a condition, as a text of JSON; undefined where it is none. */
export function chipOf(text: string, condition: Pick<ConditionDraft, 'op' | 'attribute'>): string | undefined {
  const kind = takes(condition.op);
  const trimmed = text.trim();
  if (kind === 'texts' || (kind === 'any' && condition.attribute.trim() === 'targetingKey')) {
    return JSON.stringify(trimmed);
  }
  const value = literal(trimmed);
  if (kind === 'numbers') return value !== undefined && /^[-\d]/.test(trimmed) ? trimmed : undefined;
  return value === undefined ? JSON.stringify(trimmed) : trimmed;
}

// A number, a boolean or a quoted text of JSON.
function literal(text: string): unknown {
  if (!/^(".*"|true|false|-?\d.*)$/s.test(text)) return;
  try {
    return JSON.parse(text);
  } catch {
    return;
  }
}

/** A value of a condition as it is shown: a text stands without quotes, where it could not be taken for something else. */
export function chipText(chip: string, op: Operator): string {
  const value: unknown = parseExactly(chip);
  if (typeof value !== 'string') return chip;
  return takes(op) === 'any' && literal(value) !== undefined ? chip : value;
}

/** A serve in words, also while it is not valid. */
export function shownServe(
  serve: ServeDraft,
  type: FlagType,
  names: ReadonlyMap<string, string>,
  tell: (serve: unknown, names: ReadonlyMap<string, string>) => string,
): string {
  return tell(roughServe(serve, type), names);
}

/** What would be sent for a draft, as far as it can be told while it is not valid. */
export function roughRules(draft: RulesDraft, type: FlagType): { rules: Rule[]; fallthrough: Serve | null } {
  return {
    rules: draft.rules.map((rule) => ({
      id: rule.id,
      name: rule.name.trim(),
      conditions: rule.conditions.map((condition) => sentCondition(condition)),
      serve: roughServe(rule.serve, type),
    })),
    fallthrough: draft.fallthrough && roughServe(draft.fallthrough, type),
  };
}

function roughServe(serve: ServeDraft, type: FlagType): Serve {
  try {
    return sentServe(serve, type, '');
  } catch {
    return serve.kind === 'value' ? { value: serve.value } : { rollout: [] };
  }
}

/** What differs between two drafts, as a history would have it. */
export function changesBetween(before: RulesDraft, after: RulesDraft, type: FlagType): ChangedField[] {
  return changesOfRules(roughRules(before, type), roughRules(after, type));
}

/** What differs between the rules of before and after, as a history would have it. */
export function changesOfRules(was: Rules, is: Rules): ChangedField[] {
  const find = (rules: Rule[], id: string) => rules.find((rule) => rule.id === id) ?? null;
  const ids = [...new Set([...was.rules, ...is.rules].map(({ id }) => id))];
  return [
    ...ids.map((id) => ({ field: `rules.${id}`, from: find(was.rules, id), to: find(is.rules, id) })),
    { field: 'rules.order', from: was.rules.map(({ id }) => id), to: is.rules.map(({ id }) => id) },
    { field: 'fallthrough', from: was.fallthrough, to: is.fallthrough },
  ].filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));
}
