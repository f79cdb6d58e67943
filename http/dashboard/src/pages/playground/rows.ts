import type { Evaluation } from '../../queries/explanation';
import type { Refusal, Served } from '../../queries/served';

/** What a flag serves in an environment; empty if it did not exist. */
export type Cell = { environment: string; answer?: Evaluation; refusal?: Refusal };

export type Row = { key: string; cells: Cell[]; differs: boolean };

/** Returns a row for each flag, by key. A flag differs if environments serve different values. */
export function rowsOf(served: readonly Served[]): Row[] {
  const there = served.filter(({ failure }) => !failure);
  const keys = new Set(there.flatMap(({ flags, refused }) => [...Object.keys(flags), ...Object.keys(refused)]));
  return [...keys].sort().map((key) => {
    const values = new Set(there.map(({ flags }) => JSON.stringify(flags[key]?.value)));
    return {
      key,
      cells: served.map(({ environment, flags, refused }) => ({
        environment,
        answer: flags[key],
        refusal: refused[key],
      })),
      differs: values.size > 1,
    };
  });
}
