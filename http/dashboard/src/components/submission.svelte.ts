import { asFailure, type Failure, fieldOf } from '../api/failure';

/** The submission of a form: whether it is running, and its failure. */
export class Submission {
  busy = $state(false);
  failure = $state.raw<Failure>();

  /** The error of each field, by its API name. */
  readonly wrong = $derived(this.failure?.fields ?? {});

  /** The failure, unless the fields with these names show all of it. */
  besides(names: string[]): Failure | undefined {
    const wrong = Object.keys(this.wrong);
    return wrong.length && wrong.every((name) => names.includes(fieldOf(name))) ? undefined : this.failure;
  }

  /** Handles a form's submission. Returns whether it succeeded. */
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
