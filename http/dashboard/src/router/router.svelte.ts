import { base } from '../service';

// What the browser keeps with a page.
type Kept = { at: number } | null;

// What can be left. Who goes back on a page may close a dialog, and stays on the page.
type Part = 'page' | 'dialog';

export type Query = Record<string, string | undefined>;

/** Where the person is, which the URL says. Reading it in a component keeps the component up to date. */
class Router {
  #url = $state.raw(new URL(location.href));
  // By its value: what a page asks for changes without the page being made anew.
  #path = $derived(this.#url.pathname.slice(base.length) || '/');
  #at: number; // among the pages that the browser goes back and forth between
  #agreed = false;
  #unsaved = new Map<() => boolean, Part>();
  /** What waits until the person has said whether the page is left: see shell/LeaveDialog.svelte. */
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

  /** What the URL asks the page for: filters, sorting, a tab. */
  get query(): URLSearchParams {
    return this.#url.searchParams;
  }

  /** The address of a page, for links. */
  href(path: string, query: Query = {}): string {
    const asked = new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]));
    return base + path + (asked.size ? `?${asked}` : '');
  }

  /** Goes to a page. With replace the page before is not gone back to. */
  go(path: string, query: Query = {}, { replace = false } = {}): void {
    this.#visit(this.href(path, query), replace);
  }

  /** Does what leaves the page: at once, or when the person agrees to lose what is not saved. */
  leave(act: () => void): void {
    if (this.#agreed || !this.#hasUnsaved('page', 'dialog')) return act();
    this.held = () => {
      this.#agreed = true; // also to the pages that it goes to
      act();
      this.#agreed = false;
    };
  }

  /** Has the person asked before a page, or a dialog of it, is left that has something unsaved, also with the tab. What it returns ends that. */
  warnBeforeLeaving(part: Part, unsaved: () => boolean): () => void {
    this.#unsaved.set(unsaved, part);
    return () => this.#unsaved.delete(unsaved);
  }

  #hasUnsaved(...parts: Part[]): boolean {
    return [...this.#unsaved].some(([unsaved, part]) => parts.includes(part) && unsaved());
  }

  /** Changes what the URL asks the page for; undefined takes a name away. Each change is gone back over as one, unless it replaces. */
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

  // The browser has gone back or forth: where the person is to be asked first, it returns.
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

  // Links are plain <a href>: what the browser would do by itself, such as a new tab, it does.
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
