/** Returns the header with the reason of a change, as UTF-8. */
export function reasonHeader(reason: string | undefined): { 'X-Change-Reason'?: string } {
  const utf8 = new TextEncoder().encode(reason?.trim() ?? '');
  return utf8.length ? { 'X-Change-Reason': String.fromCharCode(...utf8) } : {};
}
