import { useQueryClient } from '@tanstack/svelte-query';
import { answer } from '../api/client';
import { asFailure, type Failure } from '../api/failure';
import { type Toast, toasts } from '../components/toasts.svelte';
import { changeHeaders, refreshFlags, switchFlag, type Switched } from '../queries/flagChange';
import { pathIn } from '../router/place';
import { router } from '../router/router.svelte';
import { failureText } from '../words/failures';
import { switching as words } from '../words/switching';

/** The subject of what is told of a flag's switches. */
const subjectOf = (key: string): string => `switch ${key}`;

/**
 * Switches flags by a mutation that returns the new version. In production it asks first. It tells what it has switched, and offers to undo that
 * until somebody else changes the flag. Create it at a component's start.
 */
export class Switching {
  /** The switch that the person is asked about: the component shows the question. */
  asked = $state.raw<Switched>();
  /** The switch that was refused, with the version that it stood on. */
  refused = $state.raw<Switched & { since: number; failure: Failure }>();

  readonly #client = useQueryClient();

  constructor(private readonly mutation: { mutateAsync: (wanted: Switched) => Promise<number> }) {}

  /** Asks about a switch in production, and makes any other at once. */
  choose(wanted: Switched): void {
    this.refused = undefined;
    if (wanted.place.environment === 'production') {
      this.asked = wanted;
      return;
    }
    let since = 0;
    this.make({ ...wanted, onVersion: (version) => (since = version) }).catch(
      (error: unknown) => (this.refused = { ...wanted, since, failure: asFailure(error) }),
    );
  }

  /** Makes a switch. Throws what it was refused for. */
  async make(wanted: Switched): Promise<void> {
    const { place, key, on } = wanted;
    toasts.clear(subjectOf(key));
    const version = await this.mutation.mutateAsync(wanted);
    const told: Toast = {
      subject: subjectOf(key),
      text: words.done(on, key, place.environment),
      undo: () => this.#undo(wanted, version, told),
    };
    toasts.show(told);
  }

  async #undo({ place, key, on }: Switched, version: number, told: Toast): Promise<Toast> {
    const { subject } = told;
    try {
      await answer(switchFlag(key, !on, changeHeaders(place, { version, reason: 'undo' })));
      return { subject, text: words.undone(on, key, place.environment) };
    } catch (error) {
      if (asFailure(error).status === 412) {
        const href = router.href(pathIn(place, 'flags', key), { tab: 'history' });
        return { subject, text: words.changed(key, place.environment), bad: true, link: { name: words.more, href } };
      }
      return { ...told, text: words.notUndone(key, place.environment, failureText(error)), bad: true };
    } finally {
      void refreshFlags(this.#client, place);
    }
  }
}
