import { createQuery, keepPreviousData } from '@tanstack/svelte-query';
import { api, at, type Schemas } from '../api/client';
import { exactBody } from '../api/exact';
import { asFailure, type Failure } from '../api/failure';
import type { Context, Evaluation } from './explanation';
import { keys } from './keys';

/** Why a flag serves nothing to a user. */
export type Refusal = Schemas['EvaluationError'];

/** What all flags serve in an environment, by key. The failure says if the environment did not exist at the time. */
export type Served = {
  environment: string;
  flags: Record<string, Evaluation>;
  refused: Record<string, Refusal>;
  failure?: Failure;
};

/** Reads what all flags of a tenant serve to a user in several environments, now or at a time. */
export function useServed(
  tenant: () => string,
  environments: () => string[],
  context: () => Context | undefined,
  time: () => string | undefined,
) {
  return createQuery(() => ({
    queryKey: keys.served(tenant(), { environments: environments(), context: JSON.stringify(context()), time: time() }),
    queryFn: ({ signal }) =>
      Promise.all(environments().map((name) => readServed(tenant(), name, context()!, time(), signal))),
    enabled: context() !== undefined && environments().length > 0,
    placeholderData: keepPreviousData,
    structuralSharing: false,
    gcTime: 0, // responses with many flags are large
  }));
}

async function readServed(
  tenant: string,
  environment: string,
  context: Context,
  time: string | undefined,
  signal: AbortSignal,
): Promise<Served> {
  try {
    const { flags, errors } = await exactBody<Schemas['EvaluationsBody']>(
      api.POST('/api/v1/flags/evaluate', {
        params: { header: at({ tenant, environment }), query: time ? { at: time } : { preview: true } },
        body: { ...context, environment },
        parseAs: 'text',
        signal,
      }),
    );
    return { environment, flags, refused: errors ?? {} };
  } catch (error) {
    const failure = asFailure(error);
    const ofEnvironment = failure.status === 404 || 'environment' in failure.fields;
    if (!ofEnvironment) throw error;
    return { environment, flags: {}, refused: {}, failure };
  }
}
