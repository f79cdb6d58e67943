import { answer } from './client';

type Source = { source?: string };
type Reviver = (this: unknown, name: string, value: unknown, context?: Source) => unknown;

const json = JSON as typeof JSON & { rawJSON?: (text: string) => unknown };

/** A JSON text as a value whose numbers JSON.stringify writes as they were spelt. Browsers without JSON.rawJSON round those that a double cannot hold. */
export function parseExactly(text: string): unknown {
  const keep: Reviver = (_name, value, context) => {
    if (typeof value !== 'number' || !context?.source || !json.rawJSON) return value;
    return String(value) === context.source ? value : json.rawJSON(context.source);
  };
  return JSON.parse(text, keep);
}

type TextAnswer = Parameters<typeof answer<string>>[0];

/** The body of an answer that was asked for with parseAs: 'text', with its numbers as they were spelt. Keep it as it is: structuralSharing takes numbers apart. */
export async function exactBody<T>(call: TextAnswer): Promise<T> {
  return (await exactAnswer<T>(call)).body;
}

/** What exactBody returns, of an answer whose headers matter. */
export async function exactAnswer<T>(call: TextAnswer): Promise<{ body: T; headers: Headers }> {
  const { body, headers } = await answer(call);
  return { body: parseExactly(body) as T, headers };
}
