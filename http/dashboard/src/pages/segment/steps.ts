import type { Step } from '../../queries/explanation';
import type { Segment, SegmentCheck } from '../../queries/segments';
import { nameOf } from '../../words/changes';

/** Returns the steps of a check: the rules that were asked, or the list that decided. */
export function stepsOf(
  { key, rules }: Pick<Segment, 'key' | 'rules'>,
  { member, because, conditions }: SegmentCheck,
): Step[] {
  const own: Step = { step: 'segment', key, outcome: member ? 'member' : 'not_member', list: because?.list };
  if (because?.list) return [own];
  const end = rules.findIndex(({ id }) => id === because?.ruleId);
  const asked = end < 0 ? rules : rules.slice(0, end + 1);
  const steps = asked.map((rule): Step => ({
    step: 'rule',
    ruleName: nameOf(rule),
    ruleId: rule.id,
    outcome: rule.id === because?.ruleId ? 'matched' : 'not_matched',
    conditions: conditions.filter(({ ruleId }) => ruleId === rule.id),
  }));
  return member ? steps : [...steps, own];
}
