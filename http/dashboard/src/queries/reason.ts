/** The header that says why a change is made. Reasons are sent as UTF-8. */
export function reasonHeader(reason: string | undefined): { 'X-Change-Reason'?: string } {
  const utf8 = new TextEncoder().encode(reason?.trim() ?? '');
  return utf8.length ? { 'X-Change-Reason': String.fromCharCode(...utf8) } : {};
}
