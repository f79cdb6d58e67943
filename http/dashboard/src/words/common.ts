import { type JSONError, maxDepth } from '../api/jsonError';

/** Texts of several pages. */
export const common = {
  product: 'flagledger',
  loading: 'Loading',
  busy: 'Wait until it is done',
  unchanged: 'Nothing has changed yet',
  close: 'Close',
  cancel: 'Cancel',
  create: 'Create',
  save: 'Save',
  unsaved: {
    title: 'Close without saving?',
    text: 'What you have typed here is not saved yet, and would be lost.',
    leave: 'Close without saving',
    stay: 'Stay',
  },
  copy: 'Copy',
  copied: 'Copied',
  selected: 'Selected: copy it yourself',
  undo: 'Undo',
  undoKeys: 'Ctrl+Z',
  toasts: 'Recent actions',
  again: 'Try again',
  takeAway: (text: string) => `Remove ${isolated(text)}`,
  notLoaded: 'A part of the dashboard could not be loaded. There may be a new release, or you are offline.',
  never: 'Never',
  notJSON: ({ line, column, twice, deep }: JSONError) =>
    `must be ${deep ? `JSON with at most ${maxDepth} levels` : 'valid JSON'}: see line ${line}, column ${column}${twice ? `, which repeats ${twice}` : ''}`,
  changes: ['change', 'changes'] as const,
  optional: 'optional',
  notFound: 'There is no such page',
  notFoundText: 'It may have been deleted, or the address has a mistake.',
  toFlags: 'To the flags',
  nothingFound: 'Nothing found',
};

/** Names of the platform roles. Invitations need them without the platform's texts. */
export const platformRoles: Record<string, string> = { viewer: 'Viewer', admin: 'Admin', super_user: 'Super user' };

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const absolute = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'short' });
const days = new Intl.DateTimeFormat('en', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const dates = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' });
const numbers = new Intl.NumberFormat('en');

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 365 * 24 * 3600],
  ['month', 30 * 24 * 3600],
  ['week', 7 * 24 * 3600],
  ['day', 24 * 3600],
  ['hour', 3600],
  ['minute', 60],
];

/** Returns how long ago a time was: 3 hours ago. */
export function ago(time: string, now: number): string {
  const seconds = (new Date(time).getTime() - now) / 1000;
  for (const [unit, length] of units) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return 'just now';
}

export const exactly = (time: string): string => absolute.format(new Date(time));
export const dayOf = (time: string): string => days.format(new Date(time));
export const dayInMonth = (time: string): string => dates.format(new Date(time));
export const clockTime = (time: number): string => clock.format(time);
export const count = (n: number): string => numbers.format(n);
const sizes = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Formats a number of bytes: 1.5 MiB. */
export function size(bytes: number): string {
  const unit = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), sizes.length - 1);
  return `${count(Math.round((bytes / 1024 ** unit) * 10) / 10)} ${sizes[unit]}`;
}

/** Returns a name that people chose for use within a text. Right-to-left letters stay apart, so they do not turn the text around, and characters that turn it are left out. In markup, use <bdi>. */
export const isolated = (name: string): string => {
  const plain = name.replace(/\p{Bidi_Control}/gu, '');
  return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(plain)
    ? `\u2068${plain}\u2069`
    : plain;
};

export const plural = (n: number, one: string, many: string): string => `${count(n)} ${n === 1 ? one : many}`;

/** Returns a value on one line. */
export const oneLine = (value: unknown): string => JSON.stringify(value) ?? '';

const briefLength = 80;

/** Returns a value on one line, cut if it is long. */
export const brief = (value: unknown): string => {
  const text = oneLine(value);
  return text.length > briefLength ? `${text.slice(0, briefLength)}…` : text;
};
