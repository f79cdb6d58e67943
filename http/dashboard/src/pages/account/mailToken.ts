/** Returns the token of a mailed link and removes it from the URL. It is in the fragment, which browsers do not send. */
export function takeMailedToken(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
  history.replaceState(null, '', location.pathname);
  return token;
}
