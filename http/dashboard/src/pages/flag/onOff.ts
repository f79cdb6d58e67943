import type { FlagDetail, Variation } from '../../queries/flag';
import type { RulesDraft, ServeDraft } from './rules';

// The variations of a boolean flag that has none yet. They are created in the save of the first rules that serve them.
const onOff: Variation[] = [true, false].map((value) => {
  const name = value ? 'on' : 'off';
  return { id: `new ${name}`, name, value, weight: 0, description: '' };
});

const same = (a: Variation, b: Variation) => a.name === b.name && a.value === b.value;

const servesOf = ({ rules, fallthrough }: RulesDraft): ServeDraft[] => [
  ...rules.map(({ serve }) => serve),
  ...(fallthrough ? [fallthrough] : []),
];

const isNew = (id: string) => onOff.some((variation) => variation.id === id);

/** Whether a draft serves variations that do not exist yet. */
export const servesNew = (draft: RulesDraft): boolean =>
  servesOf(draft).some(({ kind, variationId, weights }) =>
    kind === 'rollout' ? weights.some((share) => isNew(share.variationId)) : kind === 'variation' && isNew(variationId),
  );

/** Returns the variations to create before a draft can be saved. */
export const missing = (draft: RulesDraft, variations: Variation[]): Variation[] =>
  servesNew(draft) ? onOff.filter((wanted) => !variations.some((variation) => same(variation, wanted))) : [];

/** Returns the variations that rules can serve: a boolean flag has on and off from the beginning. */
export function offered({ type, variations }: FlagDetail, draft: RulesDraft): Variation[] {
  if (type !== 'boolean' || (variations.length && !servesNew(draft))) return variations;
  return [...variations.filter((variation) => !onOff.some((wanted) => same(variation, wanted))), ...onOff];
}

/** Makes a draft serve existing variations in place of new ones with the same name and value. */
export function adopt(draft: RulesDraft, variations: Variation[]): void {
  const idOf = (id: string) => {
    const wanted = onOff.find((variation) => variation.id === id);
    return variations.find((variation) => wanted && same(variation, wanted))?.id ?? id;
  };
  for (const serve of servesOf(draft)) {
    if (isNew(serve.variationId)) serve.variationId = idOf(serve.variationId);
    for (const share of serve.weights) if (isNew(share.variationId)) share.variationId = idOf(share.variationId);
  }
}
