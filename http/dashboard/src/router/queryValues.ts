/** Returns the values of these names in a query. Empty values are omitted. */
export function queryValues<Name extends string>(
  query: URLSearchParams,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const found = names.map((name) => [name, query.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(found) as Partial<Record<Name, string>>;
}
