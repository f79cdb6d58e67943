import { useQueryClient } from '@tanstack/svelte-query';
import { answer, type Place } from '../api/client';
import { asFailure } from '../api/failure';
import { type Toast, toasts } from '../components/toasts.svelte';
import { changeHeaders, refreshFlags, switchFlag, type Switched } from '../queries/flagChange';
import { pathIn } from '../router/place';
import { router } from '../router/router.svelte';
import { failureText } from '../words/failures';
import { switching as words } from '../words/switching';

/** Whether the person is asked first, and for a reason, before a flag is switched there. */
export const asksFirst = (environment: string): boolean => environment === 'production';

/** The subject of what is told of a flag's switches. */
export const toastOf = (key: string): string => `switch ${key}`;

/** Tells that a flag was switched, as a version, and offers to take that back: as long as nobody has changed the flag since. Call it at a component's start. */
export function useTellSwitched(): (switched: Switched, version: number) => void {
  const client = useQueryClient();

  return ({ place, key, on }, version) => {
    const told: Toast = {
      subject: toastOf(key),
      text: words.done(on, key, place.environment),
      undo: () => undo(place, key, on, version, told),
    };
    toasts.show(told);
  };

  async function undo(place: Place, key: string, on: boolean, version: number, told: Toast): Promise<Toast> {
    const subject = toastOf(key);
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
      void refreshFlags(client, place);
    }
  }
}
