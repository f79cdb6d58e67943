/** The path at which the dashboard is served, such as /app or /flags/app. The server writes it into the page. Paths of pages are without it. */
export const base = document.documentElement.dataset.base!.replace(/\/$/, '');

/** The path of the service: empty, or such as /flags where a proxy serves it beside others. */
const path = base.slice(0, -'/app'.length);

/** The base URL of the service and its API. */
export const service = location.origin + path;

/** The name under which this browser stores something: another service on the same host has its own. */
export const stored = (name: string): string => path + name;
