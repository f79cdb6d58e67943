import type { components } from './schema';

export type Problem = components['schemas']['Problem'];

/** A failed call. Its status is 0 without a response. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem> = {},
    /** Seconds to wait before a retry. */
    readonly retryAfter?: number,
  ) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.name = 'Failure';
  }

  /** The errors by field name. */
  get fields(): Record<string, string> {
    return this.problem.errors ?? {};
  }

  /** Whether the reason is the person's unverified e-mail address. */
  get unverified(): boolean {
    return this.status === 403 && !!this.problem.detail?.startsWith('the e-mail address is not verified');
  }

  /** Whether the reason is that the person has left the tenant, or declined to join it. */
  get left(): boolean {
    return !!this.problem.type?.endsWith('/problems/left');
  }

  /** Whether the reason is that the tenant does not have the environment. */
  get noEnvironment(): boolean {
    return this.status === 404 && this.problem.detail === 'the tenant has no such environment';
  }

  /** Whether the service or the network is unavailable: shown data stays valid. */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }

  /** Whether a retry may succeed. */
  get transient(): boolean {
    return this.unreachable || this.status === 429;
  }
}

/** Returns the failure of a response. */
export function failureOf(response: Response, body: unknown): Failure {
  const after = Number(response.headers.get('Retry-After') ?? NaN);
  const problem = typeof body === 'object' && body !== null ? (body as Partial<Problem>) : {};
  return new Failure(response.status, problem, Number.isFinite(after) ? after : undefined);
}

export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  // fetch throws a bare TypeError if there is no network.
  if (error instanceof TypeError) return new Failure(0);
  return new Failure(500, { detail: error instanceof Error ? error.message : String(error) });
}

/** Returns the field of an error's name. The API names a tag by its index, tags[2]. */
export const fieldOf = (name: string): string => name.replace(/\[.*/, '');
