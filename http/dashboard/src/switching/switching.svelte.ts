import { useQueryClient } from '@tanstack/svelte-query';
import { answer } from '../api/client';
import { asFailure, type Failure } from '../api/failure';
import { type Toast, toasts } from '../components/toasts.svelte';
import { followersOf, readDependents } from '../queries/dependents';
import { changeHeaders, refreshFlags, switchFlag, type SwitchRequest } from '../queries/flagChange';
import { pathIn } from '../router/place';
import { router } from '../router/router.svelte';
import { failureText } from '../words/failures';
import { switching as words } from '../words/switching';

/** Returns the subject of toasts about a flag's switches. */
const subjectOf = (key: string): string => `switch ${key}`;

const longestWait = 10_000; // milliseconds

/**
 * Switches flags by a mutation that returns the new version. In production it asks first, and elsewhere before it switches off a flag that others
 * require to be on. It shows a toast that offers to undo the switch until another person changes the flag. Create it when a component starts.
 */
export class Switching {
  /** The switch to confirm: the component shows the question. */
  unconfirmed = $state.raw<SwitchRequest>();
  /** The switch that was refused, and the version that it was based on. */
  refused = $state.raw<SwitchRequest & { baseVersion: number; failure: Failure }>();

  readonly #client = useQueryClient();
  #last: Promise<unknown> = Promise.resolve(); // of the switches: they are made in the order in which they are chosen

  constructor(private readonly mutation: { mutateAsync: (request: SwitchRequest) => Promise<number> }) {}

  /** Asks to confirm a switch in production, and one that others follow, and makes any other at once. If the tenant requires a reason for it, asks then. */
  choose(request: SwitchRequest): void {
    this.refused = undefined;
    if (request.place.environment === 'production') {
      this.unconfirmed = request;
      return;
    }
    this.#last = this.#last.then(async () => {
      if (await this.#othersFollow(request)) this.unconfirmed = request;
      else this.#makeAtOnce(request);
    });
  }

  // Whether others require the flag that is switched off. If that is not known soon, it is switched off nevertheless.
  #othersFollow({ place, key, on }: SwitchRequest): Promise<boolean> {
    if (on) return Promise.resolve(false);
    const follow = readDependents(this.#client, place, key).then(
      (dependents) => followersOf(dependents, on, place.environment).length > 0,
      () => false,
    );
    return Promise.race([follow, new Promise<boolean>((resolve) => setTimeout(() => resolve(false), longestWait))]);
  }

  #makeAtOnce(request: SwitchRequest): void {
    let baseVersion = 0;
    this.make({ ...request, onVersion: (version) => (baseVersion = version) }).catch((error: unknown) => {
      const failure = asFailure(error);
      if ('X-Change-Reason' in failure.fields) this.unconfirmed = request;
      else this.refused = { ...request, baseVersion, failure };
    });
  }

  /** Makes a switch. Throws the refusal. */
  async make(request: SwitchRequest): Promise<void> {
    const { place, key, on } = request;
    toasts.clear(subjectOf(key));
    const version = await this.mutation.mutateAsync(request);
    const toast: Toast = {
      subject: subjectOf(key),
      text: words.done(on, key, place.environment),
      undo: () => this.#undo(request, version, toast),
    };
    toasts.show(toast);
  }

  async #undo({ place, key, on }: SwitchRequest, version: number, toast: Toast): Promise<Toast> {
    const { subject } = toast;
    try {
      await answer(switchFlag(key, !on, changeHeaders(place, { version, reason: 'undo' })));
      return { subject, text: words.undone(on, key, place.environment) };
    } catch (error) {
      if (asFailure(error).status === 412) {
        const href = router.href(pathIn(place, 'flags', key), { tab: 'history' });
        return { subject, text: words.changed(key, place.environment), bad: true, link: { name: words.more, href } };
      }
      return { ...toast, text: words.notUndone(key, place.environment, failureText(error)), bad: true };
    } finally {
      void refreshFlags(this.#client, place);
    }
  }
}
