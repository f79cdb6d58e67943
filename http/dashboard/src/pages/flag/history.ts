import type { FlagDetail } from '../../queries/flag';
import type { Entry } from '../../queries/history';
import type { SegmentRule } from '../../queries/rules';
import { type ChangedField, nameOf, type Names } from '../../words/changes';

/** Returns the fields that an entry of a history changed. */
export function fieldsOf(entry: Pick<Entry, 'changes'>): ChangedField[] {
  const changes = entry.changes as Record<string, Omit<ChangedField, 'field'>>;
  return Object.entries(changes).map(([field, change]) => ({ field, ...change }));
}

/** Returns the names of a flag's variations and rules, by id. Names of deleted ones come from the history. */
export function namesOf(
  variations: FlagDetail['variations'],
  rules: readonly SegmentRule[],
  entries: readonly Pick<Entry, 'changes'>[] = [],
): Names {
  const names = new Map<string, string>();
  for (const { field, from, to } of entries.flatMap(fieldsOf)) {
    const [kind, id] = field.split('.');
    const known = (to ?? from) as { name?: string } | null;
    if (!id || names.has(id) || typeof known !== 'object' || known === null) continue;
    if (kind === 'variations' && known.name) names.set(id, known.name);
    if (kind === 'rules' && id !== 'order') names.set(id, nameOf(known as SegmentRule));
  }
  for (const variation of variations) names.set(variation.id, variation.name);
  for (const rule of rules) names.set(rule.id, nameOf(rule));
  return names;
}
