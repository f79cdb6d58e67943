import { parseExactly } from '../../api/exact';
import { Failure } from '../../api/failure';
import type { UnsavedRules } from '../../queries/explanation';
import type { FlagType, Variation } from '../../queries/flag';
import type { Condition, NewRule, Operator, Rule, Rules, SegmentRule, Serve } from '../../queries/rules';
import { type ChangedField, conditionInWords, type Names, serveOf } from '../../words/changes';
import { rules as words } from '../../words/rules';
import { typed, valueOf } from './values';

/** A share of a rollout, as typed. */
export type WeightDraft = { variationId: string; weight: string };

/** A serve, as typed. */
export type ServeDraft = {
  kind: 'variation' | 'rollout' | 'value';
  variationId: string;
  value: string;
  /** The shares of a rollout. Their order decides who gets what (docs/bucketing.md). Values without a share are not here. */
  weights: WeightDraft[];
  bucketBy: string;
};

/** A condition as typed. Its values are JSON texts, so that numbers keep their digits. */
export type ConditionDraft = { id: string; attribute: string; op: Operator; values: string[]; negate: boolean };

/** A rule of a segment, as typed. It serves nothing. */
export type SegmentRuleDraft = {
  /** Its id, or a temporary one for a new rule. */
  id: string;
  name: string;
  conditions: ConditionDraft[];
};

/** A rule of a flag, as typed. */
export type RuleDraft = SegmentRuleDraft & { serve: ServeDraft };

export type RulesDraft = { rules: RuleDraft[]; fallthrough: ServeDraft | null };

/** The kind of values that an operator takes. */
export function takes(op: Operator): 'none' | 'numbers' | 'any' | 'texts' | 'segments' {
  if (op === 'exists') return 'none';
  if (op === 'in_segment') return 'segments';
  if (op === 'in') return 'any';
  return ['gt', 'gte', 'lt', 'lte'].includes(op) ? 'numbers' : 'texts';
}

export function draftOfRules({ rules, fallthrough }: Rules, type: FlagType): RulesDraft {
  return {
    rules: rules.map((rule) => ({ ...draftOfSegmentRule(rule), serve: draftOfServe(rule.serve, type) })),
    fallthrough: fallthrough && draftOfServe(fallthrough, type),
  };
}

export const draftOfSegmentRule = ({ id, name, conditions }: SegmentRule): SegmentRuleDraft => ({
  id,
  name,
  conditions: conditions.map((condition, i) => draftOfCondition(condition, `${id} ${i}`)),
});

function draftOfCondition({ attribute = '', op, values, negate }: Condition, id: string): ConditionDraft {
  return { id, attribute, op, values: values.map((value) => JSON.stringify(value)), negate };
}

const blanks: Record<FlagType, unknown> = { boolean: true, string: '', number: 0, json: {} };

// It reads only the serve, so that added or removed variations do not change it.
function draftOfServe(serve: Serve, type: FlagType): ServeDraft {
  return {
    kind: serve.rollout ? 'rollout' : serve.variationId ? 'variation' : 'value',
    variationId: serve.variationId ?? '',
    value: typed(type, serve.value === undefined ? blanks[type] : serve.value),
    weights: (serve.rollout ?? []).map(({ variationId, weight }) => ({ variationId, weight: String(weight) })),
    bucketBy: serve.bucketBy === 'targetingKey' ? '' : (serve.bucketBy ?? ''),
  };
}

/** Returns the serve of a new rule: the first variation, or a typed value if there are none. */
export function newServe(type: FlagType, variations: Variation[]): ServeDraft {
  const [first] = variations;
  return draftOfServe(first ? { variationId: first.id } : { value: blanks[type] }, type);
}

// randomUUID is missing over plain HTTP.
const newID = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

export function newRule(type: FlagType, variations: Variation[]): RuleDraft {
  return { ...newSegmentRule(), serve: newServe(type, variations) };
}

export const newSegmentRule = (): SegmentRuleDraft => ({ id: newID(), name: '', conditions: [newCondition()] });

/** Returns a rule for individual users. */
export function newTarget(type: FlagType, variations: Variation[]): RuleDraft {
  const rule = newRule(type, variations);
  rule.conditions[0]!.attribute = 'targetingKey';
  return rule;
}

/** Returns how many of the first rules only list individual users. A rule that is open for editing is none of them, so that it stays in its place. */
export function leadingTargets(rules: RuleDraft[], open: ReadonlySet<string>): number {
  const end = rules.findIndex(({ id, conditions: [only, more] }) => {
    const listed = only?.attribute === 'targetingKey' && only.op === 'in' && !only.negate;
    return open.has(id) || !listed || more;
  });
  return end < 0 ? rules.length : end;
}

export const newCondition = (): ConditionDraft => ({
  id: newID(),
  attribute: '',
  op: 'in',
  values: [],
  negate: false,
});

/** Whether all conditions are complete. */
export const isFinished = ({ conditions }: RuleDraft): boolean =>
  conditions.every(
    ({ attribute, op, values }) => (op === 'in_segment' || attribute.trim()) && (takes(op) === 'none' || values.length),
  );

export type Problems = Record<string, string>;

// Returns the rules to send for a draft. Rules that do not exist in the environment are new. Throws invalid input as a failure with the API's field names.
function sentRules(drafts: RuleDraft[], there: RuleDraft[], type: FlagType): NewRule[] {
  const known = new Map(there.map((rule) => [rule.id, rule]));
  const errors: Problems = {};
  const rules = drafts.map((rule, i) => {
    const was = known.get(rule.id);
    return {
      ...sentSegmentRule(rule, was),
      serve: caught(errors, () => sentServe(rule.serve, type, `rules[${i}].serve`, was?.serve)) ?? {},
    };
  });
  if (Object.keys(errors).length) throw new Failure(422, { errors });
  return rules;
}

/** Returns a rule to send, without what it serves. A rule that did not exist is new. */
export const sentSegmentRule = (rule: SegmentRuleDraft, was: SegmentRuleDraft | undefined) => ({
  ...(was && { id: rule.id }),
  name: trimTyped(rule.name, was?.name),
  conditions: rule.conditions.map((condition) =>
    sentCondition(
      condition,
      was?.conditions.find(({ id }) => id === condition.id),
    ),
  ),
});

/** Returns the changed parts of a draft to send. Rules that no longer exist there are sent as new ones. */
export function sentParts(
  { rules, fallthrough }: RulesDraft,
  there: RulesDraft,
  changed: (part: keyof RulesDraft) => boolean,
  type: FlagType,
): UnsavedRules {
  return {
    rules: changed('rules') ? sentRules(rules, there.rules, type) : undefined,
    fallthrough: changed('fallthrough')
      ? fallthrough && sentServe(fallthrough, type, 'serve', there.fallthrough ?? undefined)
      : undefined,
  };
}

function caught<T>(errors: Problems, make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    Object.assign(errors, error.fields);
  }
}

// Trims a text unless it is unchanged: the API accepts blanks, and they count.
const trimTyped = (text: string, was: string | undefined): string => (text === was ? text : text.trim());

export function sentCondition({ attribute, op, values, negate }: ConditionDraft, was?: ConditionDraft): Condition {
  return {
    ...(op !== 'in_segment' && { attribute: trimTyped(attribute, was?.attribute) }),
    op,
    values: takes(op) === 'none' ? [] : values.map((value) => parseExactly(value) as string),
    negate,
  };
}

// Returns the serve to send. Shares typed as 0 are omitted; shares that were 0 before are sent unchanged.
function sentServe(serve: ServeDraft, type: FlagType, field: string, was?: ServeDraft): Serve {
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

/** Returns the shares of a rollout. An invalid weight is NaN. */
export function sharesOf({ weights }: ServeDraft): { variationId: string; weight: number }[] {
  return weights.map(({ variationId, weight }) => ({ variationId, weight: weight.trim() === '' ? 0 : Number(weight) }));
}

/** Returns the JSON text of a typed value of a condition, or undefined. */
export function chipOf(text: string, condition: Pick<ConditionDraft, 'op' | 'attribute'>): string | undefined {
  const kind = takes(condition.op);
  const trimmed = text.trim();
  if (kind === 'texts' || kind === 'segments' || (kind === 'any' && condition.attribute.trim() === 'targetingKey')) {
    return JSON.stringify(condition.op === 'matches' ? trimmed : trimmed.replace(/^"([^"]*)"$/, '$1'));
  }
  const value = literal(trimmed);
  if (kind === 'numbers') return value !== undefined && /^[-\d]/.test(trimmed) ? trimmed : undefined;
  return value === undefined ? JSON.stringify(trimmed) : trimmed;
}

// Parses a number, a boolean or a quoted JSON string.
function literal(text: string): unknown {
  if (!/^(".*"|true|false|-?\d.*)$/s.test(text)) return;
  try {
    return JSON.parse(text);
  } catch {
    return;
  }
}

/** Returns the text of a condition's value. Strings have no quotes unless they would be ambiguous. */
export function chipText(chip: string, op: Operator): string {
  const value: unknown = parseExactly(chip);
  if (typeof value !== 'string') return chip;
  return takes(op) === 'any' && literal(value) !== undefined ? chip : value;
}

/** Returns a serve in words, even while it is invalid. */
export const shownServe = (serve: ServeDraft, type: FlagType, names: Names): string =>
  serveOf(roughServe(serve, type), names);

/** Returns the words of a rule, to find it by. */
export const ruleText = ({ name, conditions }: SegmentRuleDraft): string =>
  [name, ...conditions.map((c) => conditionInWords(sentCondition(c)))].join(' ');

/** Returns the rules of a draft as far as possible while it is invalid. */
export function roughRules(draft: RulesDraft, type: FlagType): { rules: Rule[]; fallthrough: Serve | null } {
  return {
    rules: draft.rules.map((rule) => ({ ...roughSegmentRule(rule), serve: roughServe(rule.serve, type) })),
    fallthrough: draft.fallthrough && roughServe(draft.fallthrough, type),
  };
}

/** Returns a rule of a draft, without what it serves. */
export const roughSegmentRule = ({ id, name, conditions }: SegmentRuleDraft): SegmentRule => ({
  id,
  name: name.trim(),
  conditions: conditions.map((condition) => sentCondition(condition)),
});

function roughServe(serve: ServeDraft, type: FlagType): Serve {
  try {
    return sentServe(serve, type, '');
  } catch {
    return serve.kind === 'value' ? { value: serve.value } : { rollout: [] };
  }
}

/** Returns the differences between two drafts, in the form of a history. */
export function changesBetween(before: RulesDraft, after: RulesDraft, type: FlagType): ChangedField[] {
  return changesOfRules(roughRules(before, type), roughRules(after, type));
}

/** Returns the differences between old and new rules, in the form of a history. */
export function changesOfRules(was: Rules, is: Rules): ChangedField[] {
  return [
    ...changesOfLists(was.rules, is.rules),
    { field: 'fallthrough', from: was.fallthrough, to: is.fallthrough },
  ].filter(differs);
}

const differs = ({ from, to }: ChangedField) => JSON.stringify(from) !== JSON.stringify(to);

/** Returns the differences between old and new lists of rules, in the form of a history. */
export function changesOfLists(was: SegmentRule[], is: SegmentRule[]): ChangedField[] {
  const find = (rules: SegmentRule[], id: string) => rules.find((rule) => rule.id === id) ?? null;
  const ids = [...new Set([...was, ...is].map(({ id }) => id))];
  return [
    ...ids.map((id) => ({ field: `rules.${id}`, from: find(was, id), to: find(is, id) })),
    { field: 'rules.order', from: was.map(({ id }) => id), to: is.map(({ id }) => id) },
  ].filter(differs);
}
