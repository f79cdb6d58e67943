import { utf8, type Bytes } from './bytes';

type Fact = { stream: string; revision: number; id: string; name: string; version: number; recorded: string };

/** An invalid file of facts. */
export class Altered extends Error {
  constructor(readonly position: number) {
    super(`fact ${position}`);
  }
}

/** Yields the canonical bytes of a file's facts in order, as docs/audit.md describes. Throws Altered if a stream lacks a revision. */
export async function* canonicalFacts(lines: AsyncIterable<string>): AsyncGenerator<Bytes> {
  const revisions = new Map<string, number>();
  let position = 0;
  for await (const line of lines) {
    if (!line.startsWith('{"stream":')) continue; // the first and the last line describe the file
    const { fact, metadata, data } = read(line, position);
    if (fact.revision !== (revisions.get(fact.stream) ?? 0) + 1) throw new Altered(position);
    revisions.set(fact.stream, fact.revision);
    const { stream, revision, id, name, version, recorded } = fact;
    const sizes = [metadata, data].map((text) => utf8(text).length);
    yield utf8(
      `flagledger fact v1\n${stream}\n${revision}\n${id}\n${name}\n${version}\n${recorded}\n${sizes[0]}\n${metadata}\n${sizes[1]}\n${data}\n`,
    );
    position++;
  }
}

// Metadata and data are used as spelled. They are the last members, and no earlier text contains an object.
function read(line: string, position: number): { fact: Fact; metadata: string; data: string } {
  const begin = after(line, ',"metadata":', 0);
  const end = begin < 0 ? -1 : endOfObject(line, begin);
  if (end < 0 || !line.startsWith(',"data":', end) || !line.endsWith('}')) throw new Altered(position);
  return {
    fact: JSON.parse(line) as Fact,
    metadata: line.slice(begin, end),
    data: line.slice(end + ',"data":'.length, -1),
  };
}

// A quotation mark inside JSON text has a backslash before it, so no text contains the searched pattern.
function after(line: string, name: string, from: number): number {
  const at = line.indexOf(name, from);
  return at < 0 ? -1 : at + name.length;
}

function endOfObject(line: string, begin: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = begin; i < line.length; i++) {
    const c = line[i];
    if (quoted) {
      if (c === '\\') i++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === '{') depth++;
    else if (c === '}' && --depth === 0) return i + 1;
  }
  return -1;
}

/** Yields the lines of a body as it arrives. */
export async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest) yield rest;
}
