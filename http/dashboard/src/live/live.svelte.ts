import type { QueryClient } from '@tanstack/svelte-query';
import { SvelteMap } from 'svelte/reactivity';
import { type Entry, readHistory } from '../queries/history';
import { keys } from '../queries/keys';
import { session } from '../session/session.svelte';
import { concerns, knownVersions } from './readings';
import { Stream, type StreamEvent } from './stream';

type Changed = NonNullable<StreamEvent['flags']>[number];

/** Changes of a flag by other people, the newest first. */
export type Mark = { key: string; entries: Entry[] };

const markDuration = 60_000; // milliseconds for which a change is marked
const hiddenTimeout = 60_000; // milliseconds after which a hidden page closes its stream
const maxLookups = 20; // flags of an event with a lookup of their changer
const maxTries = 5; // until the history has caught up with the lists

/** Changes by other people while the page is open. */
class Live {
  /** Since when the stream is down. */
  unreachableSince = $state<number>();
  readonly marks = new SvelteMap<string, Mark>();

  /** Keeps the cached data of a tenant current. Returns a function that ends that. */
  follow(tenant: string, client: QueryClient): () => void {
    const stream = new Stream(tenant, {
      changed: (event) => void this.#take(event, tenant, client, ended.signal),
      unreachable: (unreachable) => this.#hear(unreachable, client),
      refused: () => void client.invalidateQueries(), // the failing queries show why
    });
    const ended = new AbortController();
    let hiding: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(hiding);
      if (document.hidden) hiding = setTimeout(() => stream.close(), hiddenTimeout);
      else stream.open();
    };
    document.addEventListener('visibilitychange', look);
    look();
    return () => {
      document.removeEventListener('visibilitychange', look);
      clearTimeout(hiding);
      stream.close();
      ended.abort();
      this.unreachableSince = undefined;
      this.marks.clear();
    };
  }

  #hear(unreachable: boolean, client: QueryClient): void {
    if (unreachable) this.unreachableSince ??= Date.now();
    else if (this.unreachableSince !== undefined) {
      this.unreachableSince = undefined;
      void client.invalidateQueries({ predicate: (query) => query.state.fetchFailureCount > 0 });
    }
  }

  async #take(event: StreamEvent, tenant: string, client: QueryClient, ended: AbortSignal): Promise<void> {
    if (event.type !== 'refetchEvaluation') return;
    const known = knownVersions(client, tenant);
    const news = event.flags?.filter((flag) => flag.deleted || flag.version > (known.get(flag.key) ?? 0));
    const changedKeys = news && new Set(news.map(({ key }) => key));
    const named = event.flags && new Set(event.flags.map(({ key }) => key));
    void client.invalidateQueries({
      queryKey: keys.tenantFlags(tenant),
      predicate: ({ queryKey }) => concerns(queryKey, changedKeys, named),
    });
    if (news?.length === 0) return;
    void client.invalidateQueries({ queryKey: keys.trail(tenant) });
    // A change in several environments is reported once for each.
    const newest = new Map(news?.map((flag) => [flag.key, flag]));
    await Promise.all(
      [...newest.values()]
        .slice(0, maxLookups)
        .map((flag) => this.#mark(flag, tenant, known.get(flag.key) ?? flag.version - 1, ended)),
    );
  }

  async #mark(flag: Changed, tenant: string, since: number, ended: AbortSignal): Promise<void> {
    const entries = await entriesOf(flag, tenant, ended);
    const theirs = entries.filter(
      ({ version, actorType, userId }) => version > since && !(actorType === 'user' && userId === session.user?.id),
    );
    if (!theirs.length || ended.aborted) return;
    const mark = { key: flag.key, entries: theirs };
    this.marks.set(flag.key, mark);
    setTimeout(() => this.marks.get(flag.key) === mark && this.marks.delete(flag.key), markDuration);
  }
}

// A history may briefly lag behind the lists.
async function entriesOf(flag: Changed, tenant: string, ended: AbortSignal): Promise<Entry[]> {
  for (let i = 0; i < maxTries && !ended.aborted; i++) {
    const entries = await readHistory(tenant, flag.key, { limit: 10 }, ended).catch(() => []);
    if (entries.some(({ version }) => version >= flag.version)) return entries;
    await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** i));
  }
  return [];
}

export const live = new Live();
