import createClient from 'openapi-fetch';
import { service } from '../service';
import { session } from '../session/session.svelte';
import { Failure, failureOf } from './failure';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

/** Where a call is made: a tenant, and an environment of it. */
export type Place = { tenant: string; environment: string };

/** The headers that say where a call is made. */
export function at(place: Place): { 'X-Tenant-ID': string; 'X-Environment': string } {
  return { 'X-Tenant-ID': place.tenant, 'X-Environment': place.environment };
}

/** fetch with the person's token, which is renewed before it ends, and once more where the service has refused it. */
export async function authorized(request: Request): Promise<Response> {
  const again = request.clone();
  const asked = session.user?.id;
  const theirs = (token: string | undefined) => (session.user?.id === asked ? token : undefined); // another person may have signed in meanwhile
  const response = await send(request, theirs(await session.token()));
  if (response.status !== 401 || !session.signedIn) return response;
  const renewed = theirs(await session.renew());
  return renewed ? send(again, renewed) : response;
}

async function send(request: Request, token: string | undefined): Promise<Response> {
  if (token) request.headers.set('Authorization', `Bearer ${token}`);
  return fetch(request).catch((error: unknown) => {
    if (request.signal.aborted) throw error;
    throw new Failure(0);
  });
}

/** The API, as its document has it. */
export const api = createClient<paths>({ baseUrl: service, fetch: authorized });

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of an answer. A refusal is thrown as a Failure. */
export async function body<T>(call: Promise<Answer<T>>): Promise<NonNullable<T>> {
  return (await answer(call)).body;
}

/** An answer whose headers matter. A refusal is thrown as a Failure. */
export async function answer<T>(call: Promise<Answer<T>>): Promise<{ body: NonNullable<T>; headers: Headers }> {
  const { data, error, response } = await call;
  if (!response.ok) throw failureOf(response, error);
  return { body: data as NonNullable<T>, headers: response.headers };
}
