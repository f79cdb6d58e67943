import { createQuery } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';
import type { NewRule, Serve } from './rules';

export type Evaluation = Schemas['EvaluationBody'];
/** A step of an evaluation. A prerequisite has the steps of the other flag, whose shape the API's document does not say. */
export type Step = Omit<Schemas['StepBody'], 'steps'> & { steps?: Step[] };
export type Explanation = Omit<Schemas['ExplanationBody'], 'steps'> & { steps: Step[] };
export type Context = Schemas['ContextBody'];

/** A moment in the past: a time, a version of a flag, or the revision of an answer. */
export type Moment = { at?: string; version?: number; revision?: string };

/** Unsaved rules and fallthrough. What is absent stays as saved. */
export type UnsavedRules = { rules?: NewRule[]; fallthrough?: Serve | null };

/** Unsaved rules; undefined if everything is saved. They cannot be tried while they are invalid, or serve variations that do not exist yet. */
export type RulesToTry = UnsavedRules | 'unfinished' | 'new variations' | undefined;

/** Whether an explanation's rule is unsaved: its id is an index. */
export const isNewRule = (id: string | null) => id?.startsWith('rules[') ?? false;

/** Explains what a flag serves to a user, now, at a moment, or with other rules. */
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
    enabled: context() !== undefined && (typeof toTry() === 'object' || toTry() === undefined),
    // An explanation with other rules or of another moment must not stay visible.
    placeholderData: (previous, query) => (query?.queryKey.at(-2) === rules() ? previous : undefined),
    structuralSharing: false,
  }));
}
