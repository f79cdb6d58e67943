import type { Variation } from '../../queries/flag';
import type { FlagUse } from '../../queries/flagMetrics';
import { oneLine } from '../../words/common';
import { flag } from '../../words/flag';

type Point = FlagUse['points'][number];
type Outcome = Point['outcomes'][number];

const most = 5; // outcomes with a color of their own
const others = 'others';

const idOf = ({ rest, variationId, value }: Outcome) => (rest ? others : `outcome ${variationId ?? oneLine(value)}`);

/** What a flag served over time, as parts of bars: the most frequent outcomes, and all others together. If all of a flag's variations have room, they have the colors
 * that they have elsewhere. */
export function barsOf(
  points: Point[],
  variations: Variation[],
): {
  parts: Record<string, string>;
  bars: { time: string; values: Record<string, number> }[];
} {
  const sums = new Map<string, { name: string; count: number }>();
  const inOrder = variations.length <= most ? variations : [];
  for (const { id, name } of inOrder) sums.set(`outcome ${id}`, { name, count: 0 });
  for (const outcome of points.flatMap((point) => point.outcomes)) {
    const name = outcome.variationName ?? oneLine(outcome.value);
    const known = sums.get(idOf(outcome));
    sums.set(idOf(outcome), { name, count: (known?.count ?? 0) + outcome.count });
  }
  const few = sums.has(others) || sums.size > most + 1;
  sums.delete(others);
  const ofValues = [...sums].slice(0, inOrder.length);
  const ofOthers = [...sums].slice(inOrder.length).sort(([, a], [, b]) => b.count - a.count);
  const ranked = [...ofValues, ...ofOthers].slice(0, few ? most : most + 1);
  const parts = Object.fromEntries(ranked.map(([id, { name }]) => [id, name]));
  if (few) parts[others] = flag.use.others;
  const bars = points.map(({ time, outcomes }) => {
    const values: Record<string, number> = {};
    for (const outcome of outcomes) {
      const id = idOf(outcome) in parts ? idOf(outcome) : others;
      values[id] = (values[id] ?? 0) + outcome.count;
    }
    return { time, values };
  });
  return { parts, bars };
}
