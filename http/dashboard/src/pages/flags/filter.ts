import type { FlagFilter } from '../../queries/flags';
import { asked } from '../../router/asked';

/** What the list of flags can be narrowed by and sorted, as the URL and the API call it. */
const names = ['q', 'type', 'status', 'enabled', 'lifecycle', 'tag', 'projectId', 'owner', 'sort'] as const;

/** The filter that a URL asks for. */
export function filterOf(query: URLSearchParams): FlagFilter {
  return asked(query, names) as FlagFilter;
}

/** Whether it leaves flags out. */
export function narrows(filter: FlagFilter): boolean {
  return Object.keys(filter).some((name) => name !== 'sort');
}
