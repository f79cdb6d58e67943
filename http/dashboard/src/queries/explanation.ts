import { createQuery, keepPreviousData } from '@tanstack/svelte-query';
import { api, at, type Place, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { keys } from './keys';

export type Evaluation = Schemas['EvaluationBody'];
export type Explanation = Schemas['ExplanationBody'];
export type Context = Schemas['ContextBody'];

/** A moment of the past: a time, or a version of a flag. */
export type Moment = { at?: string; version?: number };

/** What a flag serves to somebody, and why: now, or what it served at a moment. */
export function useExplained(
  place: () => Place,
  key: () => string,
  context: () => Context | undefined,
  moment: () => Moment = () => ({}),
) {
  return createQuery(() => ({
    queryKey: [...keys.flag(place(), key()), 'explained', moment(), JSON.stringify(context())],
    queryFn: ({ signal }) =>
      exactBody<Evaluation>(
        api.POST('/api/v1/flags/{flagKey}/evaluate', {
          params: { path: { flagKey: key() }, header: at(place()), query: { explain: true, ...moment() } },
          body: { ...context(), environment: place().environment },
          parseAs: 'text',
          signal,
        }),
      ),
    enabled: context() !== undefined,
    placeholderData: keepPreviousData,
    structuralSharing: false,
  }));
}
