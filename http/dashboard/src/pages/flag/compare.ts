import type { FlagDetail, FlagInEnvironment } from '../../queries/flag';
import { type Prerequisite, requiredIn } from '../../queries/prerequisites';
import type { NewRule, Rule, Serve } from '../../queries/rules';
import { type ChangedField, percent } from '../../words/changes';
import { same } from './draft.svelte';
import { changesOfRules } from './rules';

/** How a rule differs from the other environment's rules. */
export type Mark = 'same' | 'differs' | 'only';

// A rule has a different id in each environment. Shares are compared as they are shown: 1 of 2 is 50 of 100.
const content = ({ name, conditions, serve }: Rule) => JSON.stringify([name, conditions, shown(serve)]);

function shown({ rollout, ...serve }: Serve) {
  const sum = rollout?.reduce((total, { weight }) => total + weight, 0) ?? 0;
  return { ...serve, rollout: rollout?.map(({ variationId, weight }) => [variationId, percent(weight, sum)]) };
}

// Returns the equal rule among others, or else the one with the same name.
function counterpart(rule: Rule, others: Rule[]): Rule | undefined {
  return (
    others.find((other) => content(other) === content(rule)) ??
    others.find((other) => rule.name !== '' && other.name === rule.name)
  );
}

export function markOf(rule: Rule, others: Rule[]): Mark {
  const other = counterpart(rule, others);
  if (!other) return 'only';
  return content(other) === content(rule) ? 'same' : 'differs';
}

/** Whether the common rules are in a different order. */
export function otherOrder(a: FlagInEnvironment, b: FlagInEnvironment): boolean {
  const common = (rules: Rule[], others: Rule[]) =>
    rules.map(content).filter((c) => others.some((other) => content(other) === c));
  return !same(common(a.rules, b.rules), common(b.rules, a.rules));
}

/** Whether two environments have the same state, rules and prerequisites. */
export const alike = (a: FlagInEnvironment, b: FlagInEnvironment): boolean =>
  a.enabled === b.enabled && same(a.rules.map(content), b.rules.map(content)) && same(requiredIn(a), requiredIn(b));

/** Returns what an enabled flag serves if no rule matches. */
export function otherwise(
  flag: Pick<FlagDetail, 'type' | 'variations' | 'defaultValue'>,
  { fallthrough }: Pick<FlagInEnvironment, 'fallthrough'>,
): Serve {
  if (fallthrough) return fallthrough;
  const rollout = flag.variations.filter(({ weight }) => weight > 0);
  if (rollout.length) return { rollout: rollout.map(({ id, weight }) => ({ variationId: id, weight })) };
  return { value: flag.type === 'boolean' ? true : flag.defaultValue };
}

export type Parts = { rules: boolean; fallthrough: boolean; prerequisites: boolean; enabled: boolean };

export type CopyChanges = {
  changes: ChangedField[];
  rules?: NewRule[];
  fallthrough?: FlagInEnvironment['fallthrough'];
  prerequisites?: Prerequisite[];
  enabled?: boolean;
};

/** Returns the changes that copy parts of another environment. Existing rules keep their ids, so that the buckets of their splits do not change. */
export function copyChanges(from: FlagInEnvironment, to: FlagInEnvironment, parts: Parts): CopyChanges {
  const free = [...to.rules];
  const rules = from.rules.map((rule, i) => {
    const known = counterpart(rule, free);
    if (known) free.splice(free.indexOf(known), 1);
    return { ...rule, id: known?.id ?? `new ${i}` };
  });
  const wanted = {
    rules: parts.rules ? rules : to.rules,
    fallthrough: parts.fallthrough ? from.fallthrough : to.fallthrough,
  };
  const ids = new Set(to.rules.map(({ id }) => id));
  const enabled = parts.enabled && from.enabled !== to.enabled ? from.enabled : undefined;
  const prerequisites = parts.prerequisites && !same(requiredIn(from), requiredIn(to)) ? requiredIn(from) : undefined;
  return {
    changes: [
      ...changesOfRules(to, wanted),
      ...(prerequisites ? [{ field: 'prerequisites', from: requiredIn(to), to: prerequisites }] : []),
      ...(enabled === undefined ? [] : [{ field: 'enabled', from: to.enabled, to: enabled }]),
    ],
    rules: same(wanted.rules, to.rules)
      ? undefined
      : rules.map(({ id, ...rule }) => (ids.has(id) ? { id, ...rule } : rule)),
    fallthrough: same(wanted.fallthrough, to.fallthrough) ? undefined : wanted.fallthrough,
    prerequisites,
    enabled,
  };
}
