import { createQuery } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';
import type { NewRule, Serve } from './rules';

export type Evaluation = Schemas['EvaluationBody'];
export type Explanation = Schemas['ExplanationBody'];
export type Context = Schemas['ContextBody'];

/** A moment of the past: a time, or a version of a flag. */
export type Moment = { at?: string; version?: number };

/** Rules and a fallthrough that are not saved. What is left out is as the environment has it. */
export type UnsavedRules = { rules?: NewRule[]; fallthrough?: Serve | null };

/** Unsaved rules; unfinished while they cannot be asked about, and undefined where all is saved. */
export type RulesToTry = UnsavedRules | 'unfinished' | undefined;

/** Whether the rule of an answer is one that is not saved: it is named by its place. */
export const isNewRule = (id: string | null) => id?.startsWith('rules[') ?? false;

/** What a flag serves to a user, and why: now, at a moment, or with other rules. */
export function useExplained(
  place: () => Place,
  key: () => string,
  context: () => Context | undefined,
  moment: () => Moment = () => ({}),
  toTry: () => RulesToTry = () => undefined,
) {
  const rules = () => JSON.stringify([moment(), toTry()]);
  return createQuery<Evaluation>(() => ({
    queryKey: [...keys.flag(place(), key()), 'explained', rules(), JSON.stringify(context())],
    queryFn: ({ signal }) => {
      const unsaved = toTry();
      const params = { path: { flagKey: key() }, header: at(place()) };
      const body = { ...context(), environment: place().environment };
      return exactBody<Evaluation>(
        typeof unsaved === 'object'
          ? api.POST('/api/v1/flags/{flagKey}/rules/evaluate', {
              params,
              body: { ...body, ...unsaved },
              parseAs: 'text',
              signal,
            })
          : api.POST('/api/v1/flags/{flagKey}/evaluate', {
              params: { ...params, query: { explain: true, ...moment() } },
              body,
              parseAs: 'text',
              signal,
            }),
      );
    },
    enabled: context() !== undefined && toTry() !== 'unfinished',
    // Of other rules, or another moment, the answer says nothing.
    placeholderData: (previous, query) => (query?.queryKey.at(-2) === rules() ? previous : undefined),
    structuralSharing: false,
  }));
}
