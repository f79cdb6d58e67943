import type { Component } from 'svelte';

export type Params = Record<string, string>;

/** A page is loaded when it is first shown. */
export type Page = () => Promise<{ default: Component }>;

export type Route = {
  /** A path whose parts after a colon are parameters: /flags/:key. */
  path: string;
  page: Page;
};

/** Returns the route that matches a path, with its parameters. */
export function match<R extends { path: string }>(
  routes: readonly R[],
  path: string,
): { route: R; params: Params } | undefined {
  const parts = path.split('/');
  for (const route of routes) {
    const params = fit(route.path.split('/'), parts);
    if (params) return { route, params };
  }
}

function fit(template: string[], parts: string[]): Params | undefined {
  if (template.length !== parts.length) return;
  const params: Params = {};
  for (const [i, name] of template.entries()) {
    const part = parts[i] ?? '';
    if (name.startsWith(':') && part) params[name.slice(1)] = decoded(part);
    else if (name !== part) return;
  }
  return params;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
