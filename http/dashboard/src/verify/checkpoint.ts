import { fromBase64, joined, same, sha256, utf8, type Bytes } from './bytes';

/** A signed statement of the number and content of a tenant's facts. */
export type Checkpoint = { origin: string; size: number; root: Bytes };

/** Why a checkpoint, or the key that verifies it, is not valid. */
export type InvalidReason = 'noKey' | 'noCheckpoint' | 'notSigned' | 'otherTenant';

/** An invalid checkpoint or key. */
export class InvalidCheckpoint extends Error {
  constructor(readonly reason: InvalidReason) {
    super(reason);
  }
}

type Key = { name: string; hash: Bytes; key: CryptoKey };

const ed25519 = 1; // the algorithm's number in a verifier key

/** Reads a verifier key of c2sp.org/signed-note: name+hash+base64. */
export async function readKey(text: string): Promise<Key> {
  const [name, hashed, ...rest] = text.trim().split('+');
  const bytes = decoded(rest.join('+'));
  if (!name || !hashed || bytes?.length !== 33 || bytes[0] !== ed25519) throw new InvalidCheckpoint('noKey');
  const hash = (await sha256(joined(utf8(`${name}\n`), bytes))).slice(0, 4);
  if (hex(hash) !== hashed.toLowerCase()) throw new InvalidCheckpoint('noKey');
  return { name, hash, key: await crypto.subtle.importKey('raw', bytes.slice(1), 'Ed25519', false, ['verify']) };
}

/** Reads a checkpoint of c2sp.org/tlog-checkpoint, after its signature is verified. */
export async function openCheckpoint(note: string, key: Key, tenant: string): Promise<Checkpoint> {
  const end = note.indexOf('\n\n');
  if (end < 0) throw new InvalidCheckpoint('noCheckpoint');
  const text = note.slice(0, end + 1);
  if (!(await signed(text, note.slice(end + 2), key))) throw new InvalidCheckpoint('notSigned');
  const [origin, size, root] = text.split('\n');
  const bytes = decoded(root ?? '');
  if (!origin || !/^(0|[1-9]\d{0,15})$/.test(size ?? '') || bytes?.length !== 32)
    throw new InvalidCheckpoint('noCheckpoint');
  if (origin !== `flagledger/${tenant}`) throw new InvalidCheckpoint('otherTenant');
  return { origin, size: Number(size), root: bytes };
}

// A note may have further signatures. A line is: — name base64(hash, signature).
async function signed(text: string, signatures: string, { name, hash, key }: Key): Promise<boolean> {
  for (const line of signatures.split('\n')) {
    const [dash, by, encoded] = line.split(' ');
    const bytes = decoded(encoded ?? '');
    if (dash !== '—' || by !== name || !bytes || !same(bytes.slice(0, 4), hash)) continue;
    if (await crypto.subtle.verify('Ed25519', key, bytes.slice(4), utf8(text))) return true;
  }
  return false;
}

function decoded(text: string): Bytes | undefined {
  try {
    return fromBase64(text);
  } catch {
    return undefined;
  }
}

const hex = (bytes: Bytes): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
