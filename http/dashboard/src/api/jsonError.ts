/** What is wrong with a text that is not valid JSON, and where. */
export type JSONError = { line: number; column: number; twice?: string; deep?: boolean };

/** The most levels that the API allows. */
export const maxDepth = 64;

const space = /[ \t\n\r]*/y;
const string = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"/uy;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/y;

class Wrong extends Error {
  constructor(
    readonly at: number,
    readonly twice?: string,
    readonly deep?: boolean,
  ) {
    super();
  }
}

/** Returns the first error of a JSON text, or undefined. A member that an object has twice is an error, as the API refuses it. */
export function jsonError(text: string): JSONError | undefined {
  let at = 0;
  let depth = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const [found] = pattern.exec(text) ?? [];
    at += found?.length ?? 0;
    return found;
  };
  const taken = (sign: string): boolean => {
    take(space);
    if (text[at] !== sign) return false;
    at++;
    return true;
  };
  const need = (ok: unknown): void => {
    if (!ok) throw new Wrong(at);
  };
  const list = (end: string, item: () => void): void => {
    if (++depth > maxDepth) throw new Wrong(at - 1, undefined, true);
    if (!taken(end)) {
      do item();
      while (taken(','));
      need(taken(end));
    }
    depth--;
  };
  const value = (): void => {
    if (taken('[')) return list(']', value);
    if (!taken('{')) return need(take(string) ?? take(scalar));
    const names = new Set<unknown>();
    list('}', () => {
      take(space);
      const began = at;
      const name = take(string);
      need(name);
      if (names.has(JSON.parse(name!))) throw new Wrong(began, name);
      names.add(JSON.parse(name!));
      need(taken(':'));
      value();
    });
  };
  try {
    value();
    take(space);
    need(at === text.length);
    return;
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    const before = text.slice(0, error.at).split('\n');
    return { line: before.length, column: before.at(-1)!.length + 1, twice: error.twice, deep: error.deep };
  }
}
