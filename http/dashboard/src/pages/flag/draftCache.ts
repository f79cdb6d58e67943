import { onDestroy } from 'svelte';
import { router } from '../../router/router.svelte';
import { session } from '../../session/session.svelte';
import { Draft } from './draft.svelte';

// Drafts of one page and person, cached when their session ended elsewhere.
let cached: { person: string | undefined; page: string; drafts: Map<string, unknown> } | undefined;

/** Returns a draft of a part of the page. If the session ends elsewhere, this tab caches it until the same person is back. Call it when a component starts. */
export function useDraft<T extends object>(part: string, value: T, version: number): Draft<T> {
  const [person, page] = [session.user?.id, router.path];
  if (cached?.person !== person) cached = undefined;
  const drafts = cached?.page === page ? cached.drafts : undefined;
  const draft = (drafts?.get(part) as Draft<T> | undefined) ?? new Draft(value, version);
  drafts?.delete(part);
  // A person who leaves the page or signs out has agreed to lose the draft.
  const cache = () => {
    if (!draft.changed || session.user?.id === person || router.path !== page) return;
    if (cached?.person !== person || cached?.page !== page) cached = { person, page, drafts: new Map() };
    cached.drafts.set(part, draft);
  };
  onDestroy(() => queueMicrotask(cache)); // during destruction the session still has the previous person
  return draft;
}
