import createClient from 'openapi-fetch';
import { service } from '../service';
import { session } from '../session/session.svelte';
import { Failure, failureOf } from './failure';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

/** The tenant and the environment of a call. */
export type Place = { tenant: string; environment: string };

/** Returns the headers with a call's tenant and environment. */
export function at(place: Place): { 'X-Tenant-ID': string; 'X-Environment': string } {
  return { 'X-Tenant-ID': place.tenant, 'X-Environment': place.environment };
}

/** Fetches with the person's token, which is renewed before it expires, and again if the service refuses it. */
export async function authorized(request: Request): Promise<Response> {
  const again = request.clone();
  const user = session.user?.id;
  const theirs = (token: string | undefined) => (session.user?.id === user ? token : undefined); // the person may have changed meanwhile
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

/** The API's client, typed by its document. */
export const api = createClient<paths>({ baseUrl: service, fetch: authorized });

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Returns the body of a response. Throws a refusal as a Failure. */
export async function body<T>(call: Promise<Answer<T>>): Promise<NonNullable<T>> {
  return (await answer(call)).body;
}

/** Returns the body and the headers of a response. Throws a refusal as a Failure. */
export async function answer<T>(call: Promise<Answer<T>>): Promise<{ body: NonNullable<T>; headers: Headers }> {
  const { data, error, response } = await call;
  if (!response.ok) throw failureOf(response, error);
  return { body: data as NonNullable<T>, headers: response.headers };
}
