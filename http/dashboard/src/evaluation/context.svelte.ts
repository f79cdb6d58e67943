import type { Context } from '../queries/explanation';
import { stored } from '../service';
import { session } from '../session/session.svelte';
import { debounced } from '../components/debounced.svelte';
import { attributesOf } from './attributes';

const keyOf = (person: string | undefined) => stored(`context ${person}`);

type Typed = {
  targetingKey: string;
  /** As JSON. */
  attributes: string;
};

/** The context of evaluations as typed. It is stored for the person and the tab, so all pages share it. */
class EvaluationContext {
  #typed = $derived.by(() => read(session.user?.id));

  get targetingKey(): string {
    return this.#typed.targetingKey;
  }

  set targetingKey(targetingKey: string) {
    this.#keep({ ...this.#typed, targetingKey });
  }

  get attributes(): string {
    return this.#typed.attributes;
  }

  set attributes(attributes: string) {
    this.#keep({ ...this.#typed, attributes });
  }

  /** undefined while the input is not a valid context. */
  get context(): Context | undefined {
    const attributes = attributesOf(this.attributes);
    return attributes && { targetingKey: this.targetingKey, attributes };
  }

  #keep(typed: Typed): void {
    this.#typed = typed;
    sessionStorage.setItem(keyOf(session.user?.id), JSON.stringify(typed));
  }
}

function read(person: string | undefined): Typed {
  const stored = sessionStorage.getItem(keyOf(person));
  return stored ? (JSON.parse(stored) as Typed) : { targetingKey: 'user-42', attributes: '{}' };
}

export const evaluationContext = new EvaluationContext();

/** Returns the context of evaluations, a moment after each change. Call it when a component starts. */
export function useEvaluationContext(): () => Context | undefined {
  let last: Context | undefined;
  return debounced(() => (last = evaluationContext.context ?? last));
}
