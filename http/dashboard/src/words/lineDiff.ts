/** A line of a difference: removed, added, unchanged, or left out. */
export type DiffLine = { kind: 'removed' | 'added' | 'same' | 'skipped'; text: string };

const around = 2; // unchanged lines that are shown beside changed ones
const mostCells = 250_000; // of the table; larger texts are shown as replaced
const mostLines = 200; // that are shown

/** Returns the changed lines between two texts, each with a few unchanged ones around it. */
export function lineDiff(from: string, to: string): DiffLine[] {
  const [a, b] = [from ? from.split('\n') : [], to ? to.split('\n') : []];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const as = (kind: DiffLine['kind'], lines: string[]) => lines.map((text) => ({ kind, text }));
  return folded([
    ...as('same', a.slice(0, start)),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...as('same', a.slice(a.length - end)),
  ]);
}

// Finds the longest common subsequence.
function middle(a: string[], b: string[]): DiffLine[] {
  const width = b.length + 1;
  const small = a.length * b.length <= mostCells;
  const common = new Uint32Array(small ? (a.length + 1) * width : 0);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  if (small)
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--)
        common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (small && i < a.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i++]! });
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: a[i++]! });
    } else lines.push({ kind: 'added', text: b[j++]! });
  }
  return lines;
}

function folded(lines: DiffLine[]): DiffLine[] {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - around), i + around + 1).some((l) => l.kind !== 'same'));
  const skipped = { kind: 'skipped' as const, text: '…' };
  const shown = lines.flatMap((line, i) => {
    if (near[i]) return [line];
    return i === 0 || near[i - 1] ? [skipped] : [];
  });
  return shown.length > mostLines ? [...shown.slice(0, mostLines), skipped] : shown;
}
