import { isRawJSON } from '../api/exact';
import type { Prerequisite } from '../queries/prerequisites';
import type { Condition, Rule, SegmentRule, Serve } from '../queries/rules';
import { isolated } from './common';
import { wordsOf } from './failures';
import { type DiffLine, lineDiff } from './lineDiff';
import { flags } from './flags';
import { operators, rules as ruleWords } from './rules';

/** One change in words: its subject, and the values before and after, or for JSON their lines. */
export type ChangeLine = { what: string; before?: string; after?: string; lines?: DiffLine[] };

/** A changed value that cannot be parsed yet. */
export const invalid = Symbol('invalid');

/** A changed field, as in the API's histories and diffs. */
export type ChangedField = { field: string; from: unknown; to: unknown };

/** The names of history entries. */
export const actions: Record<string, string> = {
  created: 'Created',
  updated: 'Changed',
  status_changed: 'Status changed',
  enabled: 'Switched on',
  disabled: 'Switched off',
  variation_added: 'Variation added',
  variation_updated: 'Variation changed',
  variation_removed: 'Variation deleted',
  rules_changed: 'Rules changed',
  members_added: 'Members added',
  members_removed: 'Members removed',
  forgotten: 'Members forgotten',
  fallthrough_changed: 'Value for everyone else changed',
  prerequisites_changed: 'Prerequisites changed',
  deleted: 'Deleted',
  reverted: 'Reverted',
};

const fields: Record<string, string> = {
  name: 'Name',
  description: 'Description',
  tags: 'Tags',
  status: 'Status',
  permanent: 'Permanent',
  clientSide: 'Seen by browsers',
  owner: 'Owner',
  links: 'Links',
  offServes: 'When off',
  defaultValue: 'Default value',
  enabled: 'State',
  prerequisites: 'Prerequisites',
  type: 'Type',
  projectId: 'Project',
  included: 'Included',
  excluded: 'Excluded',
  weight: 'weight',
  value: 'value',
};

/** The names of changed things, by id. */
export type Names = ReadonlyMap<string, string>;

/** The id under which names have what a flag serves without rules and fallthrough, if that is known. */
export const unset = 'unset';

export const goneName = 'a deleted one';

export const goneMember = 'a former member';

/** Returns changes in words. */
export function changeLines(changes: readonly ChangedField[], names: Names): ChangeLine[] {
  return changes.flatMap((change) => linesOf(change, names));
}

function linesOf({ field, from, to }: ChangedField, names: Names): ChangeLine[] {
  const [kind, id, part] = field.split('.');
  if (kind === 'variations' && id) return variationLines(id, part, from, to, names);
  if (field === 'rules.order') return orderLines(from as string[], to as string[], names);
  if (kind === 'rules') return ruleLines(from as AnyRule | null, to as AnyRule | null, names);
  if (field === 'prerequisites') {
    return prerequisiteLines(from as Prerequisite[] | null, to as Prerequisite[] | null, names);
  }
  if (field === 'fallthrough') {
    return [serveLine(ruleWords.everyoneElse, from as Serve | null, to as Serve | null, names)];
  }
  if (field === 'version' || field === 'at') return [{ what: 'To version', after: String(to) }];
  if (field === 'owner' || field === 'projectId') {
    const gone = field === 'owner' ? goneMember : goneName;
    const named = (id: unknown) => (id ? (names.get(id as string) ?? gone) : undefined);
    return [{ what: fields[field]!, before: named(from), after: named(to) }];
  }
  return [line(fields[field] ?? field, field, from, to)];
}

function serveLine(what: string, from: Serve | null, to: Serve | null, names: Names): ChangeLine {
  if (!byLines(from?.value) && !byLines(to?.value)) {
    return { what, before: serveOf(from, names), after: serveOf(to, names) };
  }
  const text = (serve: Serve | null) =>
    byLines(serve?.value) ? JSON.stringify(serve?.value, null, 2) : serveOf(serve, names);
  return { what, lines: lineDiff(text(from), text(to)) };
}

const byLines = (value: unknown) => typeof value === 'object' && value !== null && !isRawJSON(value);

function line(what: string, field: string, from: unknown, to: unknown): ChangeLine {
  const values = field === 'defaultValue' || field === 'value';
  if (values && to !== invalid && (byLines(from) || byLines(to))) {
    const text = (value: unknown) => (value === null || value === undefined ? '' : JSON.stringify(value, null, 2));
    return { what, lines: lineDiff(text(from), text(to)) };
  }
  return { what, before: plain(field, from), after: plain(field, to) };
}

/** Names a field of a change, such as variations.<id>.weight. */
export function fieldName({ field, from, to }: ChangedField, names: Names): string {
  const [kind = '', id, part] = field.split('.');
  if (field === 'rules.order') return ruleWords.order;
  if (field === 'variations.order') return ruleWords.variationOrder;
  if (kind === 'environments' && id) return part ? `Color of ${id}` : 'Order of environments';
  if (!id || (kind !== 'rules' && kind !== 'variations')) return fields[field] ?? wordsOf(field);
  const thing = (to ?? from) as { name?: string; conditions?: Condition[] } | null;
  if (kind === 'rules') return ruleWords.rule(thing?.conditions ? nameOf(thing as Rule) : goneName);
  const name = names.get(id) ?? thing?.name ?? goneName;
  return `Variation ${isolated(name)}${part ? `: ${fields[part] ?? part}` : ''}`;
}

// A rule of a segment serves nothing.
type AnyRule = SegmentRule & Partial<Pick<Rule, 'serve'>>;

function plain(field: string, value: unknown): string | undefined {
  if (value === null || value === undefined) return;
  if (value === invalid) return 'not valid yet';
  if (field === 'enabled') return value ? flags.enabled.true : flags.enabled.false;
  if (field === 'permanent' || field === 'clientSide') return value ? 'Yes' : 'No';
  if (field === 'offServes') return flags.offServes[value as keyof typeof flags.offServes];
  if (field === 'status') return flags.status[value as keyof typeof flags.status];
  if (field === 'type') return flags.types[value as keyof typeof flags.types];
  if (field === 'tags') return (value as string[]).join(', ') || 'none';
  if (field === 'included' || field === 'excluded') return firstOf(value as string[]) || undefined;
  if (field === 'links') return (value as { title: string }[]).map((link) => link.title).join(', ') || 'none';
  if (field === 'defaultValue' || field === 'value') return JSON.stringify(value);
  return typeof value === 'string' ? value || 'none' : JSON.stringify(value);
}

type Variation = { name: string; value: unknown; weight: number; description?: string };

function variationLines(id: string, part: string | undefined, from: unknown, to: unknown, names: Names): ChangeLine[] {
  const name = names.get(id) ?? (to as Variation | null)?.name ?? (from as Variation | null)?.name ?? goneName;
  if (part) {
    return [line(`Variation ${isolated(name)}: ${fields[part] ?? part}`, part, from, to)];
  }
  const [before, after] = [from as Variation | null, to as Variation | null];
  if (before && after) {
    return (['name', 'value', 'weight', 'description'] as const)
      .filter((p) => JSON.stringify(before[p]) !== JSON.stringify(after[p]))
      .map((p) => line(`Variation ${isolated(name)}: ${(fields[p] ?? p).toLowerCase()}`, p, before[p], after[p]));
  }
  return [
    {
      what: `Variation ${isolated(name)}`,
      before: before ? variation(before) : undefined,
      after: after ? variation(after) : undefined,
    },
  ];
}

function variation({ value, weight }: Variation): string {
  return JSON.stringify(value) + (weight ? `, weight ${weight}` : '');
}

// Added and removed rules are reported themselves. The order is reported if remaining rules have moved.
function orderLines(from: string[] | null, to: string[] | null, names: Names): ChangeLine[] {
  const [before, after] = [from ?? [], to ?? []];
  const stayed = (ids: string[], others: string[]) => ids.filter((id) => others.includes(id));
  const [was, is] = [stayed(before, after), stayed(after, before)];
  if (was.join() === is.join()) return [];
  // What stayed in its place before and after is left out.
  const first = was.findIndex((id, i) => id !== is[i]);
  const last = was.findLastIndex((id, i) => id !== is[i]);
  const named = (ids: string[]) =>
    [
      ...(first > 0 ? ['…'] : []),
      ...ids.slice(first, last + 1).map((id) => isolated(names.get(id) ?? goneName)),
      ...(last < ids.length - 1 ? ['…'] : []),
    ].join(' → ');
  return [{ what: ruleWords.order, before: named(was), after: named(is) }];
}

function prerequisiteLines(from: Prerequisite[] | null, to: Prerequisite[] | null, names: Names): ChangeLine[] {
  const text = (list: Prerequisite[] | null, key: string) => {
    const found = list?.find(({ flagKey }) => flagKey === key);
    return found && prerequisiteInWords(found, names);
  };
  const flagKeys = [...new Set([...(from ?? []), ...(to ?? [])].map(({ flagKey }) => flagKey))];
  const lines = flagKeys
    .map((key) => ({ what: ruleWords.prerequisite, before: text(from, key), after: text(to, key) }))
    .filter(({ before, after }) => before !== after);
  return lines.length ? lines : [{ what: ruleWords.prerequisitesMoved }];
}

/** Returns a prerequisite in words: payments is on and serves on or trial. */
export function prerequisiteInWords(prerequisite: Prerequisite, names: Names): string {
  return `${isolated(prerequisite.flagKey)} ${ruleWords.must(prerequisite.off, servedBy(prerequisite, names))}`;
}

/** Returns the values that meet a prerequisite in words. */
export const servedBy = ({ serves = [] }: Prerequisite, names: Names): string =>
  alternatives.format(serves.map((serve) => serveOf(serve, names)));

const alternatives = new Intl.ListFormat('en', { type: 'disjunction' });

function ruleLines(from: AnyRule | null, to: AnyRule | null, names: Names): ChangeLine[] {
  if (!from || !to) {
    const rule = (from ?? to)!;
    const text = inWords(rule, names);
    return [{ what: ruleWords.rule(nameOf(rule)), before: from ? text : undefined, after: to ? text : undefined }];
  }
  const lines: ChangeLine[] = [];
  const what = (part: string) => `${ruleWords.rule(nameOf(to))}: ${part}`;
  if (from.name !== to.name)
    lines.push({ what: what(ruleWords.name.toLowerCase()), before: from.name, after: to.name });
  const left = without(from.conditions, to.conditions);
  const came = without(to.conditions, from.conditions);
  for (let i = 0; i < Math.max(left.length, came.length); i++) {
    const [before, after] = [left[i], came[i]];
    lines.push({
      what: what(ruleWords.condition),
      before: before && conditionInWords(before),
      after: after && conditionInWords(after),
    });
  }
  if (!left.length && !came.length && JSON.stringify(from.conditions) !== JSON.stringify(to.conditions)) {
    lines.push({ what: what(ruleWords.conditionsMoved) });
  }
  if (JSON.stringify(from.serve) !== JSON.stringify(to.serve)) {
    lines.push(serveLine(what(ruleWords.serves), from.serve ?? null, to.serve ?? null, names));
  }
  return lines;
}

function without(conditions: Condition[], others: Condition[]): Condition[] {
  const known = others.map((o) => JSON.stringify(o));
  return conditions.filter((c) => !known.includes(JSON.stringify(c)));
}

/** Returns the title of a rule: its name, or else its conditions. */
export function nameOf(rule: Pick<Rule, 'name' | 'conditions'>): string {
  if (rule.name || !rule.conditions.length) return rule.name || ruleWords.everyone;
  const conditions = rule.conditions.filter(({ attribute, values, op }) =>
    op === 'in_segment' ? values.length : attribute,
  );
  return conditionsInWords(conditions) || ruleWords.new;
}

function inWords({ conditions, serve }: AnyRule, names: Names): string {
  const when = conditionsInWords(conditions);
  if (!serve) return when || ruleWords.everyone;
  return `${when ? `${ruleWords.if} ${when}` : ruleWords.everyone}: ${serveOf(serve, names)}`;
}

/** Returns a rule's conditions in words; empty without conditions. */
export const conditionsInWords = (conditions: Condition[], most?: number): string =>
  conditions.map((condition) => conditionInWords(condition, most)).join(` ${ruleWords.and} `);

const shownValues = 8;

/** Returns a condition in words, with its first values. Texts that look like numbers or booleans are in quotes. */
export function conditionInWords({ attribute = '', op, values, negate }: Condition, most = shownValues): string {
  const { is, isNot } = operators[op];
  const plain = (value: unknown) =>
    typeof value === 'string' &&
    !(op === 'in' && attribute !== 'targetingKey' && /^(true|false|-?[\d.]+)$/.test(value));
  const texts = values.map((v) => (plain(v) ? String(v) : JSON.stringify(v)));
  const subject = op === 'in_segment' ? ruleWords.user : isolated(attribute);
  return `${subject} ${negate ? isNot : is} ${firstOf(texts, most)}`.trim();
}

/** Returns the first of some texts, and how many more there are. */
export function firstOf(texts: string[], most = shownValues): string {
  const more = texts.length > most ? ` ${ruleWords.more(texts.length - most)}` : '';
  return texts.slice(0, most).map(isolated).join(', ') + more;
}

/** Returns a serve in words. */
export function serveOf(serve: unknown, names: Names): string {
  const { variationId, rollout, bucketBy, value } = (serve ?? {}) as Serve;
  const named = (id: string) => isolated(names.get(id) ?? goneName);
  if (!serve) return names.get(unset) ?? ruleWords.byWeights;
  if (rollout) {
    const sum = rollout.reduce((total, share) => total + share.weight, 0);
    const shares = rollout.map((share) => `${named(share.variationId)} ${percent(share.weight, sum)}`).join(', ');
    return bucketBy && bucketBy !== 'targetingKey' ? `${shares} ${ruleWords.by(bucketBy)}` : shares;
  }
  return variationId ? named(variationId) : JSON.stringify(value);
}

/** Returns a serve in a few words, with shares first: 10% on, 90% off. */
export function servedShares(serve: Serve, names: Names): string {
  const shares = serve.rollout?.filter(({ weight }) => weight > 0);
  if (!shares) return serveOf(serve, names);
  const sum = shares.reduce((total, { weight }) => total + weight, 0);
  const shown = shares
    .slice(0, shownShares)
    .map(({ variationId, weight }) => `${percent(weight, sum)} ${isolated(names.get(variationId) ?? goneName)}`);
  if (shares.length > shownShares) shown.push(ruleWords.more(shares.length - shownShares));
  return shown.join(', ');
}

const shownShares = 4;

const percents = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2 });

/** Returns a weight as a percentage of all. */
export const percent = (weight: number, sum: number): string => percents.format(sum > 0 ? weight / sum : 0);
