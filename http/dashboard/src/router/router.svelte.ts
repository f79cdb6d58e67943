import { base } from '../service';

// The browser's history state of a page.
type Kept = { at: number } | null;

// What can be left. Back on a page may close a dialog and stay on the page.
type Part = 'page' | 'dialog';

export type Query = Record<string, string | undefined>;

/** The current URL. Components that read it update with it. */
class Router {
  #url = $state.raw(new URL(location.href));
  // By its value, so that a change of the query does not create the page again.
  #path = $derived(this.#url.pathname.slice(base.length) || '/');
  #at: number; // the index in the browser's history
  #agreed = false;
  #unsaved = new Map<() => boolean, Part>();
  /** The action that waits until the person agrees to leave the page: see shell/LeaveDialog.svelte. */
  held = $state.raw<() => void>();

  constructor() {
    this.#at = (history.state as Kept)?.at ?? 0;
    history.replaceState({ at: this.#at } satisfies Kept, '');
    addEventListener('popstate', (event) => this.#arrive((event.state as Kept)?.at ?? 0));
    addEventListener('beforeunload', (event) => this.#hasUnsaved('page', 'dialog') && event.preventDefault());
    document.addEventListener('click', (event) => this.#follow(event));
  }

  /** The path of the page, such as /t/1/production/flags. */
  get path(): string {
    return this.#path;
  }

  /** The URL's query: filters, sorting, a tab. */
  get query(): URLSearchParams {
    return this.#url.searchParams;
  }

  /** Returns the address of a page, for links. */
  href(path: string, query: Query = {}): string {
    const asked = new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]));
    return base + path + (asked.size ? `?${asked}` : '');
  }

  /** Goes to a page. With replace, it replaces the current history entry. */
  go(path: string, query: Query = {}, { replace = false } = {}): void {
    this.#visit(this.href(path, query), replace);
  }

  /** Runs an action that leaves the page, at once or after the person agrees to lose unsaved input. */
  leave(act: () => void): void {
    if (this.#agreed || !this.#hasUnsaved('page', 'dialog')) return act();
    this.held = () => {
      this.#agreed = true; // also for redirects
      act();
      this.#agreed = false;
    };
  }

  /** Guards unsaved input of a page or dialog: leaving it needs a confirmation, also with the tab. Returns a function that ends that. */
  warnBeforeLeaving(part: Part, unsaved: () => boolean): () => void {
    this.#unsaved.set(unsaved, part);
    return () => this.#unsaved.delete(unsaved);
  }

  #hasUnsaved(...parts: Part[]): boolean {
    return [...this.#unsaved].some(([unsaved, part]) => parts.includes(part) && unsaved());
  }

  /** Changes the URL's query; undefined removes a name. Each change is one history entry unless it replaces the current one. */
  setQuery(change: Query, { replace = true } = {}): void {
    const asked = { ...Object.fromEntries(this.query), ...change };
    this.#show(this.href(this.path, asked), replace);
  }

  #show(href: string, replace: boolean): void {
    if (!replace) this.#at++;
    history[replace ? 'replaceState' : 'pushState']({ at: this.#at } satisfies Kept, '', href);
    this.#url = new URL(location.href);
  }

  #visit(href: string, replace: boolean): void {
    const show = () => {
      this.#show(href, replace);
      scrollTo(0, 0);
    };
    if (new URL(href, location.href).pathname === this.#url.pathname) show();
    else this.leave(show);
  }

  // The browser went back or forward. If a confirmation is needed, it returns first.
  #arrive(at: number): void {
    const by = at - this.#at;
    const left: Part[] = location.pathname === this.#url.pathname ? ['dialog'] : ['page', 'dialog'];
    if (by && !this.#agreed && this.#hasUnsaved(...left)) {
      history.go(-by);
      this.held = () => {
        this.#agreed = true;
        history.go(by);
      };
      return;
    }
    this.#agreed = false;
    this.#at = at;
    if (location.href !== this.#url.href) this.#url = new URL(location.href);
  }

  // Links are plain <a href>, so that the browser handles new tabs and the like.
  #follow(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey ||
      link.target ||
      link.hasAttribute('download')
    )
      return;
    if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${base}/`)) return;
    event.preventDefault();
    this.#visit(link.href, link.href === location.href);
  }
}

export const router = new Router();
