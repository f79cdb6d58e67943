import type { FlagInEnvironment } from '../../queries/flag';
import {
  type FlagEverywhere,
  type Graph,
  type Prerequisite,
  requiredIn,
  type ServedValue,
} from '../../queries/prerequisites';
import type { Serve } from '../../queries/rules';
import { servedBy, servedShares } from '../../words/changes';
import { brief } from '../../words/common';
import { dependencies } from '../../words/dependencies';
import { rules as words } from '../../words/rules';
import { otherwise } from './compare';
import { same } from './draft.svelte';
import { namesOf } from './history';

/** Returns what a flag serves in an environment, in a few words. The graph has the flags that it requires, as far as they are known. */
export function servesNow(
  flag: Omit<FlagEverywhere, 'environments'>,
  column: FlagInEnvironment,
  environment: string,
  graph?: Graph,
): string {
  if (flag.status !== 'active') return words.servesNow[flag.status](brief(flag.defaultValue));
  if (!column.enabled) return words.servesNow.off(brief(flag.defaultValue));
  const unmet = requiredIn(column).find(
    (prerequisite) => isMet(prerequisite, environment, graph, [flag.key]) === false,
  );
  if (unmet) return words.servesNow.unmet(dependencies.toBe(unmet.flagKey, wanted(unmet, environment, graph)));
  return words.servesNow.on(column.rules.length, servedShares(otherwise(flag, column), namesOf(flag.variations, [])));
}

// Returns what an unmet prerequisite wants of the other flag.
function wanted(prerequisite: Prerequisite, environment: string, graph: Graph | undefined): string {
  if (prerequisite.off) return dependencies.off;
  if (isOn(prerequisite.flagKey, environment, graph, []) === false) return dependencies.on;
  return dependencies.mustServe(servedNames(prerequisite, graph?.get(prerequisite.flagKey)));
}

/** Returns the values that meet a prerequisite in words. */
export const servedNames = (prerequisite: Prerequisite, other: FlagEverywhere | null | undefined): string =>
  servedBy(prerequisite, namesOf(other?.variations ?? [], []));

/** Whether a flag is on for everyone (true) or for no one (false). It is undefined if that depends on the user, or is not known. */
export function isOn(key: string, environment: string, graph: Graph | undefined, path: string[]): boolean | undefined {
  const flag = graph?.get(key);
  if (flag === undefined || path.includes(key)) return undefined;
  const column = flag?.environments[environment];
  if (flag?.status !== 'active' || !column?.enabled) return false;
  const met = requiredIn(column).map((prerequisite) => isMet(prerequisite, environment, graph, [...path, key]));
  return met.includes(false) ? false : met.includes(undefined) ? undefined : true;
}

function isMet(
  prerequisite: Prerequisite,
  environment: string,
  graph: Graph | undefined,
  path: string[],
): boolean | undefined {
  const on = isOn(prerequisite.flagKey, environment, graph, path);
  if (prerequisite.off) return on === undefined ? undefined : !on;
  if (on === false) return false;
  const flag = graph?.get(prerequisite.flagKey);
  const column = flag?.environments[environment];
  if (!flag || !column || column.rules.length) return undefined;
  const only = onlyServed(otherwise(flag, column));
  if (!only) return undefined;
  const valueOf = ({ variationId, value }: ServedValue) =>
    variationId ? flag.variations.find(({ id }) => id === variationId)?.value : value;
  const serves = prerequisite.serves?.some((served) =>
    served.variationId ? served.variationId === only.variationId : same(served.value, valueOf(only)),
  );
  return serves ? on : false;
}

// Returns what everyone is served; undefined if shares differ.
function onlyServed({ rollout, variationId, value }: Serve): ServedValue | undefined {
  if (!rollout) return variationId ? { variationId } : { value };
  const shares = rollout.filter(({ weight }) => weight > 0);
  return shares.length === 1 ? { variationId: shares[0]!.variationId } : undefined;
}
