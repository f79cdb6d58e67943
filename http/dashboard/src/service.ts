/** The path of the dashboard, such as /app or /flags/app. The server writes it into the page. Paths of pages exclude it. */
export const base = document.documentElement.dataset.base!.replace(/\/$/, '');

/** The path of the service: empty, or such as /flags behind a proxy that serves several. */
const path = base.slice(0, -'/app'.length);

/** The base URL of the service and its API. */
export const service = location.origin + path;

/** Returns the name under which this browser stores something. Other services on the same host have other names. */
export const stored = (name: string): string => path + name;
