import { onDestroy } from 'svelte';
import { router } from '../../router/router.svelte';
import { session } from '../../session/session.svelte';
import { Draft } from './draft.svelte';

// What was typed into the parts of one page when the session of one person ended there.
let kept: { person: string | undefined; page: string; drafts: Map<string, unknown> } | undefined;

/** A draft of a part of the page. When the session ends elsewhere it waits, in this tab alone, until the same person is back. Call it at a component's start. */
export function useDraft<T extends object>(part: string, value: T, version: number): Draft<T> {
  const [person, page] = [session.user?.id, router.path];
  if (kept?.person !== person) kept = undefined;
  const drafts = kept?.page === page ? kept.drafts : undefined;
  const draft = (drafts?.get(part) as Draft<T> | undefined) ?? new Draft(value, version);
  drafts?.delete(part);
  // Who leaves the page, or signs out, has agreed to lose what is typed.
  const keep = () => {
    if (!draft.changed || session.user?.id === person || router.path !== page) return;
    if (kept?.person !== person || kept?.page !== page) kept = { person, page, drafts: new Map() };
    kept.drafts.set(part, draft);
  };
  onDestroy(() => queueMicrotask(keep)); // what is destroyed reads who was signed in before
  return draft;
}
