import { asFailure } from '../api/failure';
import { plural } from './common';

const byStatus: Record<number, string> = {
  0: 'The service cannot be reached. Check your connection, then try again.',
  401: 'Your session has ended. Sign in again.',
  403: 'You may not do this. Ask an admin of the tenant.',
  404: 'It is not there any more, or never was.',
  409: 'It is in conflict with what is there.',
  412: 'Somebody else has changed it meanwhile.',
  413: 'It is too large.',
  429: 'That was too much at once.',
  500: 'The service has made a mistake.',
  502: 'The service is away for a moment.',
  503: 'The service is away for a moment.',
  504: 'The service is away for a moment.',
};

const unverified = 'Your e-mail address is not verified yet. Follow the link that was mailed to you, then try again.';

/** What a failure is, in a sentence or two. */
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

/** What is wrong with a field, as it stands beside it: the API says what comes after the field's name. */
export function fieldErrorText(label: string, wrong: string | undefined): string | undefined {
  return wrong && sentence(`${label} ${wrong}`);
}

function fields(wrong: Record<string, string>): string {
  return Object.entries(wrong)
    .map(([name, what]) => sentence(`${name === 'X-Change-Reason' ? 'a reason' : name} ${what}`))
    .join(' ');
}

/** A text of the API as a sentence. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const end = /[.!?]$/.test(trimmed) ? '' : '.';
  return trimmed.charAt(0).toUpperCase() + trimmed.slice(1) + end;
}

export const outage = {
  offline: 'You are offline.',
  unreachable: 'The service is away.',
  part: (time: string) => `Some of what is shown is from ${time}, and may be old.`,
  shows: (time: string) => `This is how things stood at ${time}.`,
};
