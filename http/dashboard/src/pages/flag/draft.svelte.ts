import type { ChangedField } from '../../words/changes';

/** A draft and the state that it started from. Other people's changes do not overwrite what was typed. */
export class Draft<T extends object> {
  mine = $state() as T;
  #base = $state.raw() as T;
  #version = $state(0);
  /** What is there now, where others have changed the same meanwhile. */
  theirs = $state.raw<{ value: T; version: number }>();
  #sent = $state.raw<T>();
  #seen: { value: T; version: number } | undefined;
  #partly: { parts: Partial<T>; version: number } | undefined; // what of it is saved, while the rest is on its way

  constructor(value: T, version: number) {
    this.begin(value, version);
  }

  /** What it was when the person began, or what they chose to go on from. */
  get base(): T {
    return this.#base;
  }

  /** The version that a change stands on. */
  get version(): number {
    return this.#version;
  }

  /** Whether something is typed that is not saved. */
  get changed(): boolean {
    return !same(this.mine, this.#base);
  }

  /** The fields that differ from what was there, as they are read: one that cannot be yet, as it is typed. */
  changes(read: (from: T, field: keyof T) => unknown): (ChangedField & { field: keyof T })[] {
    const shown = (from: T, field: keyof T) => {
      try {
        return read(from, field);
      } catch {
        return from[field];
      }
    };
    return (Object.keys(this.mine) as (keyof T & string)[])
      .filter((field) => !same(this.mine[field], this.#base[field]))
      .map((field) => ({ field, from: shown(this.#base, field), to: shown(this.mine, field) }));
  }

  begin(value: T, version: number): void {
    this.#base = value;
    this.#version = version;
    this.mine = structuredClone(value);
    this.theirs = undefined;
  }

  /** Goes back to what was there, or to theirs where others have changed the same. */
  discard(): void {
    this.begin(this.theirs?.value ?? this.#base, this.theirs?.version ?? this.#version);
  }

  /** Goes on from theirs with what was typed. */
  keepMine(): void {
    if (this.theirs) this.#standOn(this.theirs.value, this.theirs.version);
  }

  /** While it is being saved, what comes in may be what was saved, with what the service made of it. */
  saving(): void {
    this.#sent = $state.snapshot(this.mine) as T;
    this.#seen = undefined;
    this.#partly = undefined;
  }

  get busy(): boolean {
    return this.#sent !== undefined;
  }

  /** It is saved, as a version. What was typed meanwhile stays, on top of it. */
  saved(version: number): void {
    if (this.#sent) this.#base = this.#sent;
    this.#sent = undefined;
    if (this.#seen && this.#seen.version > version) {
      this.#version = version;
      this.follow(this.#seen.value, this.#seen.version);
    } else this.#standOn(this.#seen?.value ?? this.#base, version);
  }

  /** A part of what is being saved is there, as a version. The rest is on its way. */
  savedPart(part: keyof T, version: number): void {
    if (this.#sent)
      this.#partly = { parts: { ...this.#partly?.parts, [part]: this.#sent[part] } as Partial<T>, version };
  }

  /** It was not saved, or not all of it: what was typed stays. */
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

  /** Takes in what is there now. */
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

  // What the person has not touched becomes as it is there.
  #standOn(value: T, version: number): void {
    for (const part of Object.keys(value) as (keyof T)[]) {
      if (same(this.mine[part], this.#base[part])) this.mine[part] = structuredClone(value[part]);
    }
    this.#base = value;
    this.#version = version;
    this.theirs = undefined;
  }
}

/** Whether two values are the same by what they say. */
export function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
