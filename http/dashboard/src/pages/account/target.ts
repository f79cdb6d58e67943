import { router } from '../../router/router.svelte';

const own = ['/sign-in', '/sign-up', '/forgot-password'];

/** Returns the page that the person wants to open: the current one, which sign-in replaces, or the one that led here. It is always a page of the dashboard. */
export function targetPath(): string {
  if (!own.includes(router.path)) return router.path + (router.query.size ? `?${router.query}` : '');
  const next = router.query.get('next') ?? '';
  const { origin, pathname } = new URL(router.href(next), location.origin);
  return next.startsWith('/') && origin === location.origin && pathname.startsWith(router.href('/')) ? next : '/';
}

/** Returns the address of a page of the account, which keeps the target. */
export function accountPath(path: string, next = targetPath()): string {
  return router.href(path, { next: next === '/' ? undefined : next });
}

/** Opens the target. If sign-in replaces it, it appears by itself. */
export function openTarget(): void {
  if (own.includes(router.path)) router.go(targetPath(), {}, { replace: true });
}
