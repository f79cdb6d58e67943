import type { Place } from '../../api/client';
import { readAuditKey, readCheckpoint, readConsistency, readFacts } from '../../queries/audit';
import { fromBase64, same } from '../../verify/bytes';
import { Altered, canonicalFacts, linesOf } from '../../verify/facts';
import { type Checkpoint, openCheckpoint, readKey } from '../../verify/checkpoint';
import { GrowingTree, hashLeaf, verifyConsistency } from '../../verify/tree';

/** The result of a verification. */
export type Finding =
  | { kind: 'signed'; key: string; note: string; checkpoint: Checkpoint }
  | { kind: 'grown'; earlier: Checkpoint; checkpoint: Checkpoint }
  | { kind: 'whole'; checkpoint: Checkpoint };

/** Whether this browser can verify: hashing needs TLS or a local page. */
export const canVerify = (): boolean => typeof crypto.subtle !== 'undefined';

/** Verifies the current checkpoint, with the service's key or one that the person saved elsewhere. */
export async function verifySigned(place: Place, keptKey: string): Promise<Finding & { kind: 'signed' }> {
  const key = keptKey.trim() || (await readAuditKey(place)).trim();
  const note = await readCheckpoint(place);
  return { kind: 'signed', key, note, checkpoint: await openCheckpoint(note, await readKey(key), place.tenant) };
}

/** Verifies that the trail begins with the content of an earlier checkpoint. */
export async function verifyGrown(
  place: Place,
  { key, checkpoint }: Finding & { kind: 'signed' },
  earlierNote: string,
): Promise<Finding | undefined> {
  const earlier = await openCheckpoint(tidy(earlierNote), await readKey(key), place.tenant);
  if (earlier.size > checkpoint.size) return undefined;
  const { hashes } =
    earlier.size === checkpoint.size ? { hashes: [] } : await readConsistency(place, earlier.size, checkpoint.size);
  return (await verifyConsistency(earlier, checkpoint, hashes.map(fromBase64)))
    ? { kind: 'grown', earlier, checkpoint }
    : undefined;
}

/** Hashes all facts and compares them with a checkpoint. progress is called with the number of hashed facts. */
export async function verifyWhole(
  place: Place,
  checkpoint: Checkpoint,
  progress: (facts: number) => void,
): Promise<Finding | undefined> {
  const tree = new GrowingTree();
  try {
    for await (const fact of canonicalFacts(linesOf(await readFacts(place)))) {
      if (tree.size === checkpoint.size) break; // facts after the checkpoint
      await tree.add(await hashLeaf(fact));
      if (tree.size % 250 === 0) progress(tree.size);
    }
  } catch (error) {
    if (error instanceof Altered) return undefined;
    throw error;
  }
  progress(tree.size);
  return tree.size === checkpoint.size && same(await tree.root(), checkpoint.root)
    ? { kind: 'whole', checkpoint }
    : undefined;
}

// A pasted text may lack its final line feed or contain carriage returns.
const tidy = (note: string): string => `${note.replace(/\r/g, '').trim()}\n`;
