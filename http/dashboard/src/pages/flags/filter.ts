import type { FlagFilter } from '../../queries/flags';

/** What the list of flags can be narrowed by and sorted, as the URL and the API call it. */
const names = ['q', 'type', 'status', 'enabled', 'lifecycle', 'tag', 'projectId', 'sort'] as const;

/** The filter that a URL asks for. */
export function filterOf(query: URLSearchParams): FlagFilter {
  const asked = names.map((name) => [name, query.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(asked) as FlagFilter;
}

/** Whether it leaves flags out. */
export function narrows(filter: FlagFilter): boolean {
  return Object.keys(filter).some((name) => name !== 'sort');
}
