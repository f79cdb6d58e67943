import type { Failure } from '../../api/failure';
import type { SegmentRuleDraft } from './rules';

// Errors without a field here, such as too many rules, are shown at the bottom.
const shownBeside =
  /^(rules\[\d+\]\.(name|conditions\[\d+\]\.(attribute|op|values(\[.*)?))|(rules\[\d+\]\.)?serve(\.(variationId|value|bucketBy|rollout(\[.*)?))?)$/;

/** The errors of rules by field. The API names rules and conditions by index, so its errors hold for the order that was sent. */
export class RuleErrors<R extends SegmentRuleDraft = SegmentRuleDraft> {
  #rules: () => R[];
  #order = $derived.by(() =>
    JSON.stringify(this.#rules().map(({ id, conditions }) => [id, conditions.map((c) => c.id)])),
  );
  #refused = $state.raw<{ failure: Failure; order: string }>();

  constructor(rules: () => R[]) {
    this.#rules = rules;
  }

  get failure(): Failure | undefined {
    return this.#refused?.order === this.#order ? this.#refused.failure : undefined;
  }

  set failure(failure: Failure | undefined) {
    this.#refused = failure && { failure, order: this.#order };
  }

  get #fields(): Record<string, string> {
    return this.failure?.fields ?? {};
  }

  /** Whether the fields show all errors. */
  get beside(): boolean {
    const names = Object.keys(this.#fields);
    return names.length > 0 && names.every((name) => shownBeside.test(name));
  }

  /** The rules with errors. */
  get rules(): R[] {
    const rules = this.#rules();
    return Object.keys(this.#fields).flatMap((name) => rules[Number(/^rules\[(\d+)\]/.exec(name)?.[1] ?? NaN)] ?? []);
  }

  /** Returns the error of a field or a part of it: the error of values[3] belongs to the values. */
  of(field: string): string | undefined {
    return Object.entries(this.#fields).find(
      ([name]) => name === field || (!field.endsWith('serve') && name.startsWith(`${field}[`)),
    )?.[1];
  }
}
