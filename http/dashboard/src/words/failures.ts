import { asFailure } from '../api/failure';
import { plural } from './common';

const byStatus: Record<number, string> = {
  0: 'The service cannot be reached. Check your connection, then try again.',
  401: 'Your session has ended. Sign in again.',
  403: 'You may not do this. Ask an admin of the tenant.',
  404: 'It does not exist, or was deleted.',
  409: 'It conflicts with the current state.',
  412: 'Another person has changed it meanwhile.',
  413: 'It is too large.',
  429: 'There were too many requests.',
  500: 'The service has failed.',
  502: 'The service is temporarily unavailable.',
  503: 'The service is temporarily unavailable.',
  504: 'The service is temporarily unavailable.',
};

const unverified = 'Your e-mail address is not verified yet. Follow the link that was mailed to you, then try again.';

export const stranger = 'You are not a member of this tenant. Choose another one above.';

// Texts of the API about the caller.
const details: Record<string, string> = {
  'the caller is a member of no tenant': 'You are a member of no tenant. Ask an admin to invite you.',
  'the caller is not a member of the tenant': stranger,
};

/** Describes a failure in one or two sentences. */
export function failureText(error: unknown): string {
  const failure = asFailure(error);
  if (failure.unverified) return unverified;
  const general = byStatus[failure.status] ?? byStatus[500]!;
  const detail = details[failure.problem.detail ?? ''] ?? failure.problem.detail;
  switch (failure.status) {
    case 0:
    case 401:
    case 412:
      return general;
    case 422:
      return Object.keys(failure.fields).length ? fields(failure.fields) : sentence(detail ?? general);
    case 429:
    case 503:
    case 504:
      return failure.retryAfter
        ? `${general} Try again in ${plural(failure.retryAfter, 'second', 'seconds')}.`
        : `${general} Try again soon.`;
    default:
      return detail ? sentence(detail) : general;
  }
}

/** Describes the error of a field: the API's text follows the field's name. */
export function fieldErrorText(label: string, wrong: string | undefined): string | undefined {
  return wrong && sentence(`${label} ${inWords(wrong)}`);
}

function fields(wrong: Record<string, string>): string {
  return Object.entries(wrong)
    .map(([name, what]) => sentence(`${wordsOf(name)} ${inWords(what)}`))
    .join(' ');
}

// Fields that texts of the API mention.
const mentioned: Record<string, string> = { 'naming.pattern': 'the pattern', variationId: 'variation' };

const inWords = (text: string): string => text.replace(/naming\.pattern|variationId/g, (field) => mentioned[field]!);

const fieldNames: Record<string, string> = {
  'X-Change-Reason': 'a reason',
  flag_variations: 'variation',
  flagCount: 'flags',
  op: 'operator',
  projectId: 'project',
  variationId: 'variation',
};

/** Names a field of the API: rules[0].conditions[1].op becomes "Rules 1, conditions 2, operator". */
export function wordsOf(field: string): string {
  const words = field.split('.').map((part) => {
    const [, name = part, index] = /^(.*?)(?:\[(\d+)\])?$/.exec(part) ?? [];
    const plain =
      fieldNames[name] ??
      name
        .replace(/_/g, ' ')
        .replace(/([a-z])([A-Z])/g, '$1 $2')
        .toLowerCase();
    return index ? `${plain} ${Number(index) + 1}` : plain;
  });
  const text = words.join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Turns a text of the API into a sentence. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const end = /[.!?]$/.test(trimmed) ? '' : '.';
  return trimmed.charAt(0).toUpperCase() + trimmed.slice(1) + end;
}

export const outage = {
  offline: 'You are offline.',
  unreachable: 'The service is unavailable.',
  part: (time: string) => `Some data is from ${time} and may be outdated.`,
  shows: (time: string) => `The data is from ${time}.`,
};
