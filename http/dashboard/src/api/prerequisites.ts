import type { Client } from 'openapi-fetch';
import { api } from './client';
import type { components } from './schema';

/** A value of the other flag that meets a prerequisite: a variation, or a value. */
export type ServedValue = { variationId?: string; value?: unknown };

/** A prerequisite: the other flag must be on and serve one of the values, or must be off. */
export type Prerequisite = { flagKey: string; off?: boolean; serves?: ServedValue[] };

/** A prerequisite of another flag, with that flag's key. */
export type Dependent = Prerequisite & { environment: string };

type Problem = { content: { 'application/problem+json': components['schemas']['Problem'] } };

type Header = { 'X-Tenant-ID'?: string; 'X-Environment'?: string; 'If-Match'?: string; 'X-Change-Reason'?: string };
type Params = { path: { flagKey: string }; header?: Header };
type Ok<T> = { 200: { content: { 'application/json': T } }; default: Problem };
type Body = { prerequisites: Prerequisite[] };

type Paths = {
  '/api/v1/flags/{flagKey}/prerequisites': {
    get: { parameters: Params; responses: Ok<Body> };
    put: {
      parameters: Params;
      requestBody: { content: { 'application/json': Body } };
      responses: Ok<Body>;
    };
  };
  '/api/v1/flags/{flagKey}/dependents': { get: { parameters: Params; responses: Ok<Dependent[]> } };
};

/** The client of the calls that the API's document does not have yet. */
export const prerequisitesAPI = api as unknown as Client<Paths>;
