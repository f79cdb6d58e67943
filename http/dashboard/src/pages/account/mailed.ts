/** The token of a mailed link, which stands in the fragment of the page's address: browsers send that to nobody. It is taken out of the address. */
export function takeMailedToken(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
  history.replaceState(null, '', location.pathname);
  return token;
}
