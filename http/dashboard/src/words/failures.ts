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

/** Describes a failure in one or two sentences. */
export function failureText(error: unknown): string {
  const failure = asFailure(error);
  if (failure.unverified) return unverified;
  const general = byStatus[failure.status] ?? byStatus[500]!;
  const detail = failure.problem.detail;
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
  return wrong && sentence(`${label} ${wrong}`);
}

function fields(wrong: Record<string, string>): string {
  return Object.entries(wrong)
    .map(([name, what]) => sentence(`${name === 'X-Change-Reason' ? 'a reason' : name} ${what}`))
    .join(' ');
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
