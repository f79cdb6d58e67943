import { goneName, type Names } from './changes';

const ofIds = ['owner', 'projectId', 'userId', 'rules.order', 'variations.order'];
const ofPeople = ['value', 'values', 'defaultValue']; // their texts are no ids of the service

/** Returns a value of a change as text, with names in place of ids. */
export function valueText(field: string, value: unknown, names: Names, unnamed = goneName): string {
  const keeps = ofPeople.includes(field.split('.').at(-1)!);
  const named = keeps ? value : withNames(value, ofIds.includes(field), (id) => names.get(id) ?? unnamed);
  return typeof named === 'string' ? named : JSON.stringify(named, null, 2);
}

// The own id of a thing is left out. Numbers that are parsed exactly are objects with the member rawJSON.
function withNames(value: unknown, id: boolean, nameOf: (id: string) => string): unknown {
  if (typeof value === 'string') return id ? nameOf(value) : value;
  if (Array.isArray(value)) return value.map((part) => withNames(part, id, nameOf));
  if (typeof value !== 'object' || value === null || 'rawJSON' in value) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'id')
      .map(([name, part]) => {
        if (ofPeople.includes(name)) return [name, part];
        if (name === 'variationId') return ['variation', withNames(part, true, nameOf)];
        return [name, withNames(part, false, nameOf)];
      }),
  );
}
