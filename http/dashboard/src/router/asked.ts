/** What a URL asks for of some names. Empty values ask for nothing. */
export function asked<Name extends string>(
  query: URLSearchParams,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const found = names.map((name) => [name, query.get(name)]).filter(([, value]) => value);
  return Object.fromEntries(found) as Partial<Record<Name, string>>;
}
