/** Proposes a key for a name: "Crème brûlée 2" becomes creme-brulee-2. */
export function keyFor(name: string): string {
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const parts = plain.split(/[^a-z0-9._]+/).filter(Boolean);
  return parts
    .join('-')
    .replace(/^[._]+/, '')
    .slice(0, 128);
}
