import type { FlagFilter } from '../../queries/flags';
import { queryValues } from '../../router/queryValues';

/** The names of filter and order in the URL and the API. */
const names = [
  'q',
  'type',
  'status',
  'enabled',
  'lifecycle',
  'clientSide',
  'tag',
  'projectId',
  'owner',
  'sort',
] as const;

/** Returns the filter of a URL. */
export function filterOf(query: URLSearchParams): FlagFilter {
  return queryValues(query, names) as FlagFilter;
}

/** Whether the filter excludes flags. */
export function narrows(filter: FlagFilter): boolean {
  return Object.keys(filter).some((name) => name !== 'sort');
}
