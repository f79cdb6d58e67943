import { joined, same, sha256, type Bytes } from './bytes';

// Merkle trees of RFC 6962.
const leafMark = new Uint8Array([0]);
const nodeMark = new Uint8Array([1]);

export const hashLeaf = (leaf: Bytes): Promise<Bytes> => sha256(joined(leafMark, leaf));
const hashNode = (left: Bytes, right: Bytes): Promise<Bytes> => sha256(joined(nodeMark, left, right));

/** Computes the root of leaves added one by one. It stores one hash for each full subtree. */
export class GrowingTree {
  size = 0;
  #full: { height: number; hash: Bytes }[] = [];

  async add(leaf: Bytes): Promise<void> {
    let [height, hash] = [0, leaf];
    while (this.#full.at(-1)?.height === height) {
      hash = await hashNode(this.#full.pop()!.hash, hash);
      height++;
    }
    this.#full.push({ height, hash });
    this.size++;
  }

  async root(): Promise<Bytes> {
    const hashes = this.#full.map((tree) => tree.hash);
    let root = hashes.pop() ?? (await sha256(new Uint8Array()));
    while (hashes.length) root = await hashNode(hashes.pop()!, root);
    return root;
  }
}

/** Whether a proof shows that a tree begins with a smaller one: RFC 9162, section 2.1.4.2. */
export async function verifyConsistency(
  from: { size: number; root: Bytes },
  to: { size: number; root: Bytes },
  proof: Bytes[],
): Promise<boolean> {
  if (from.size > to.size || from.size < 1) return false;
  if (from.size === to.size) return !proof.length && same(from.root, to.root);
  const path = [...proof];
  let [first, second] = [from.size - 1, to.size - 1];
  while (first % 2) [first, second] = [half(first), half(second)];
  const begin = first ? path.shift() : from.root;
  if (!begin) return false;
  let [before, after] = [begin, begin];
  for (const hash of path) {
    if (!second) return false;
    if (first % 2 || first === second) {
      before = await hashNode(hash, before);
      after = await hashNode(hash, after);
      while (first && !(first % 2)) [first, second] = [half(first), half(second)];
    } else {
      after = await hashNode(after, hash);
    }
    [first, second] = [half(first), half(second)];
  }
  return !second && same(before, from.root) && same(after, to.root);
}

const half = (n: number): number => Math.floor(n / 2);
