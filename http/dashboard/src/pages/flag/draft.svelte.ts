import { type ChangedField, invalid } from '../../words/changes';

/** A draft and the state that it started from. Other people's changes do not overwrite what was typed. */
export class Draft<T extends object> {
  mine = $state() as T;
  #base = $state.raw() as T;
  #version = $state(0);
  /** The current state, if other people have changed the same fields. */
  theirs = $state.raw<{ value: T; version: number }>();
  #sent = $state.raw<T>();
  #seen: { value: T; version: number } | undefined;
  #partly: { parts: Partial<T>; version: number } | undefined; // the saved parts, while the rest is sent

  constructor(value: T, version: number) {
    this.begin(value, version);
  }

  /** The state that the person started from, or chose to continue from. */
  get base(): T {
    return this.#base;
  }

  /** The version that a change is based on. */
  get version(): number {
    return this.#version;
  }

  /** Whether there is unsaved input. */
  get changed(): boolean {
    return !same(this.mine, this.#base);
  }

  /** What the person's changes are compared with: in a conflict, the other people's state. */
  get before(): T {
    return this.theirs?.value ?? this.#base;
  }

  /** The state with the person's changes. */
  get after(): T {
    const parts = Object.entries(this.before).map(([name, value]) => {
      const part = name as keyof T;
      return [part, same(this.mine[part], this.#base[part]) ? (value as T[keyof T]) : this.mine[part]];
    });
    return Object.fromEntries(parts) as T;
  }

  /** The fields that the person changes, parsed. A field that cannot be parsed yet is invalid. */
  changes(read: (from: T, field: keyof T) => unknown): (ChangedField & { field: keyof T })[] {
    const { before, after } = this;
    const parsed = (from: T, field: keyof T) => {
      try {
        return read(from, field);
      } catch {
        return invalid;
      }
    };
    return (Object.keys(after) as (keyof T & string)[])
      .filter((field) => !same(after[field], before[field]))
      .map((field) => ({ field, from: parsed(before, field), to: parsed(after, field) }));
  }

  begin(value: T, version: number): void {
    this.#base = value;
    this.#version = version;
    this.mine = structuredClone(value);
    this.theirs = undefined;
  }

  /** Returns to the base, or in a conflict to the other people's state. */
  discard(): void {
    this.begin(this.theirs?.value ?? this.#base, this.theirs?.version ?? this.#version);
  }

  /** Continues from the other people's state with the person's input. */
  keepMine(): void {
    if (this.theirs) this.#standOn(this.theirs.value, this.theirs.version);
  }

  /** Call it before saving: the next state may be the saved one, as normalized by the service. */
  saving(): void {
    this.#sent = $state.snapshot(this.mine) as T;
    this.#seen = undefined;
    this.#partly = undefined;
  }

  get busy(): boolean {
    return this.#sent !== undefined;
  }

  /** Call it after saving, with the new version. Input since then stays on top. */
  saved(version: number): void {
    if (this.#sent) this.#base = this.#sent;
    this.#sent = undefined;
    if (this.#seen && this.#seen.version > version) {
      this.#version = version;
      this.follow(this.#seen.value, this.#seen.version);
    } else this.#standOn(this.#seen?.value ?? this.#base, version);
  }

  /** Call it when a part is saved, with its version. The rest is still being sent. */
  savedPart(part: keyof T, version: number): void {
    if (this.#sent)
      this.#partly = { parts: { ...this.#partly?.parts, [part]: this.#sent[part] } as Partial<T>, version };
  }

  /** Call it if saving failed, entirely or in part: the input stays. */
  refused(): void {
    this.#sent = undefined;
    if (this.#partly) {
      this.#base = { ...this.#base, ...this.#partly.parts };
      this.#version = this.#partly.version;
      this.#partly = undefined;
    }
    if (!this.#seen) return;
    const { value, version } = this.#seen;
    if (version === this.#version) this.#standOn(value, version);
    else this.follow(value, version);
  }

  /** Takes over the current state. */
  follow(value: T, version: number): void {
    if (version < this.#version) return;
    this.#seen = { value, version };
    if (this.busy) return;
    const both = (Object.keys(value) as (keyof T)[]).filter(
      (part) =>
        !same(value[part], this.#base[part]) &&
        !same(this.mine[part], this.#base[part]) &&
        !same(this.mine[part], value[part]),
    );
    if (both.length) this.theirs = { value, version };
    else this.#standOn(value, version);
  }

  // Fields that the person has not changed take the current values.
  #standOn(value: T, version: number): void {
    for (const part of Object.keys(value) as (keyof T)[]) {
      if (same(this.mine[part], this.#base[part])) this.mine[part] = structuredClone(value[part]);
    }
    this.#base = value;
    this.#version = version;
    this.theirs = undefined;
  }
}

/** Whether two values have the same content. */
export function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
