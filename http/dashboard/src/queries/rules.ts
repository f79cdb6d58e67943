import { createQuery } from '@tanstack/svelte-query';
import { answer, api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import type { UnsavedRules } from './explanation';
import type { Variation } from './flag';
import { type ChangeBasis, changeHeaders, switchFlag, useFlagChange, versionAfter, versionOf } from './flagChange';
import { keys } from './keys';

export type Rules = Schemas['RulesBody'];
export type Rule = Schemas['RuleBody'];
export type SegmentRule = Schemas['SegmentRuleBody'];
export type NewRule = Schemas['NewRuleBody'];
export type Condition = Schemas['ConditionBody'];
export type Operator = Condition['op'];
export type Serve = Schemas['ServeBody'];

/** Reads the rules of a flag in an environment, with its fallthrough. */
export function useRules(place: () => Place, key: () => string) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'rules'],
    queryFn: ({ signal }: { signal: AbortSignal }) => readRules(place(), key(), signal),
    structuralSharing: false,
  }));
}

export type VersionedRules = Rules & { version: number };

// Reads the rules with their version.
async function readRules(place: Place, key: string, signal: AbortSignal): Promise<VersionedRules> {
  let version = 0;
  const rules = await exactBody<Rules>(
    api
      .GET('/api/v1/flags/{flagKey}/rules', {
        params: { path: { flagKey: key }, header: at(place) },
        parseAs: 'text',
        signal,
      })
      .then((got) => {
        version = versionOf(got.response.headers);
        return got;
      }),
  );
  return { ...rules, version };
}

export type RulesWanted = ChangeBasis & {
  rules?: NewRule[];
  /** null unsets it; undefined leaves it. */
  fallthrough?: Serve | null;
  prerequisites?: Schemas['PrerequisiteBody'][];
  enabled?: boolean;
  /** Variations to create first. */
  first?: Schemas['NewVariationBody'][];
  /** Returns the rules that serve them. */
  rest?: (made: Variation[]) => UnsavedRules;
  /** Called after each saved part with the new version: a later part may be refused. */
  savedPart?: (part: 'rules' | 'fallthrough' | 'prerequisites', version: number) => void;
};

/** Changes variations, the rules, the fallthrough, the prerequisites, and whether the flag is on: one change each, based on the one before. */
export function useSaveRules(place: () => Place, key: () => string) {
  return useFlagChange(
    place,
    async ({ enabled, prerequisites, savedPart, first = [], rest, ...wanted }: RulesWanted) => {
      const [there, flagKey] = [place(), key()]; // the person may go elsewhere between two changes
      const basis = { version: wanted.version, reason: wanted.reason };
      const params = () => ({ path: { flagKey }, header: changeHeaders(there, basis) });
      const made: Variation[] = [];
      for (const { name, value } of first) {
        const call = api.POST('/api/v1/flags/{flagKey}/variations', { params: params(), body: { name, value } });
        const { body, headers } = await answer(call);
        made.push(body);
        basis.version = versionOf(headers);
      }
      const { rules, fallthrough } = rest?.(made) ?? wanted;
      if (rules) {
        basis.version = await versionAfter(
          api.PUT('/api/v1/flags/{flagKey}/rules', { params: params(), body: { rules } }),
        );
        savedPart?.('rules', basis.version);
      }
      if (fallthrough !== undefined) {
        basis.version = await versionAfter(
          api.PUT('/api/v1/flags/{flagKey}/fallthrough', { params: params(), body: { serve: fallthrough } }),
        );
        savedPart?.('fallthrough', basis.version);
      }
      if (prerequisites) {
        basis.version = await versionAfter(
          api.PUT('/api/v1/flags/{flagKey}/prerequisites', { params: params(), body: { prerequisites } }),
        );
        savedPart?.('prerequisites', basis.version);
      }
      if (enabled !== undefined) {
        basis.version = await versionAfter(switchFlag(flagKey, enabled, changeHeaders(there, basis)));
      }
      return basis.version;
    },
  );
}
