import { answer } from './client';

type Source = { source?: string };
type Reviver = (this: unknown, name: string, value: unknown, context?: Source) => unknown;

const json = JSON as typeof JSON & { rawJSON?: (text: string) => unknown; isRawJSON?: (value: unknown) => boolean };

/** Whether a value is a number that JSON.stringify writes unchanged. */
export const isRawJSON = (value: unknown): boolean => json.isRawJSON?.(value) ?? false;

/** Parses JSON so that JSON.stringify writes numbers unchanged. Browsers without JSON.rawJSON round numbers that a double cannot hold. */
export function parseExactly(text: string): unknown {
  const keep: Reviver = (_name, value, context) => {
    if (typeof value !== 'number' || !context?.source || !json.rawJSON) return value;
    return String(value) === context.source ? value : json.rawJSON(context.source);
  };
  return JSON.parse(text, keep);
}

type TextAnswer = Parameters<typeof answer<string>>[0];

/** Returns the body of a response requested with parseAs: 'text', with unchanged numbers. Use it without structuralSharing, which would split them. */
export async function exactBody<T>(call: TextAnswer): Promise<T> {
  return (await exactAnswer<T>(call)).body;
}

/** Returns what exactBody does, with the headers. */
export async function exactAnswer<T>(call: TextAnswer): Promise<{ body: T; headers: Headers }> {
  const { body, headers } = await answer(call);
  return { body: parseExactly(body) as T, headers };
}
