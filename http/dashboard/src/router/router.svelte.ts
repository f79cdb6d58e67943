/** The path at which the dashboard is served. Paths of pages are without it. */
const base = '/app';

export type Query = Record<string, string | undefined>;

/** Where the person is, which the URL says. Reading it in a component keeps the component up to date. */
class Router {
  #url = $state.raw(new URL(location.href));

  constructor() {
    addEventListener('popstate', () => (this.#url = new URL(location.href)));
    document.addEventListener('click', (event) => this.#follow(event));
  }

  /** The path of the page, such as /t/1/production/flags. */
  get path(): string {
    return this.#url.pathname.slice(base.length) || '/';
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
    this.#show(this.href(path, query), replace);
    scrollTo(0, 0);
  }

  /** Changes what the URL asks the page for; undefined takes a name away. Each change is gone back over as one, unless it replaces. */
  ask(change: Query, { replace = true } = {}): void {
    const asked = { ...Object.fromEntries(this.query), ...change };
    this.#show(this.href(this.path, asked), replace);
  }

  #show(href: string, replace: boolean): void {
    history[replace ? 'replaceState' : 'pushState'](null, '', href);
    this.#url = new URL(location.href);
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
    this.#show(link.href, link.href === location.href);
    scrollTo(0, 0);
  }
}

export const router = new Router();
