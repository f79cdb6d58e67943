import { asFailure, type Failure, fieldOf } from '../api/failure';

/** What a form sends: whether it is under way, and what went wrong. */
export class Submission {
  busy = $state(false);
  failure = $state.raw<Failure>();

  /** What is wrong with each field, by its name in the API. */
  readonly wrong = $derived(this.failure?.fields ?? {});

  /** The failure, unless all that it tells stands beside fields of these names. */
  besides(names: string[]): Failure | undefined {
    const wrong = Object.keys(this.wrong);
    return wrong.length && wrong.every((name) => names.includes(fieldOf(name))) ? undefined : this.failure;
  }

  /** Takes over a form's submission. Returns whether it was sent. */
  async submit(event: SubmitEvent, send: () => Promise<unknown>): Promise<boolean> {
    event.preventDefault();
    this.busy = true;
    this.failure = undefined;
    try {
      await send();
      return true;
    } catch (error) {
      this.failure = asFailure(error);
      return false;
    } finally {
      this.busy = false;
    }
  }
}
