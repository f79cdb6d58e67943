import type { components } from './schema';

export type Problem = components['schemas']['Problem'];

/** A call that did not succeed. Its status is 0 where no answer came. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem> = {},
    /** Seconds after which the service wants to be asked again. */
    readonly retryAfter?: number,
  ) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.name = 'Failure';
  }

  /** What is wrong, by the name of a field. */
  get fields(): Record<string, string> {
    return this.problem.errors ?? {};
  }

  /** Whether it is refused because the person's e-mail address is not verified. */
  get unverified(): boolean {
    return this.status === 403 && !!this.problem.detail?.startsWith('the e-mail address is not verified');
  }

  /** Whether it is refused because the person has left the tenant, or declined to join it. */
  get left(): boolean {
    return !!this.problem.type?.endsWith('/problems/left');
  }

  /** Whether it is refused because the tenant does not have the environment. */
  get noEnvironment(): boolean {
    return this.status === 404 && this.problem.detail === 'the tenant has no such environment';
  }

  /** Whether the service, or the way to it, cannot be reached: what was shown still stands. */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }

  /** Whether the same call may succeed a little later. */
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
  // fetch has no more than TypeError for a network that is not there.
  if (error instanceof TypeError) return new Failure(0);
  return new Failure(500, { detail: error instanceof Error ? error.message : String(error) });
}

/** The field that a name in a problem is of: the API names a tag by its place, tags[2]. */
export const fieldOf = (name: string): string => name.replace(/\[.*/, '');
