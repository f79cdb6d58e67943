import { router } from '../../router/router.svelte';

const own = ['/sign-in', '/sign-up', '/forgot-password'];

/** The page that the person has come for, with what it asks for: the one that signing in stands in for, or the one that led here. It is always one of the dashboard. */
export function wanted(): string {
  if (!own.includes(router.path)) return router.path + (router.query.size ? `?${router.query}` : '');
  const next = router.query.get('next') ?? '';
  const { origin, pathname } = new URL(router.href(next), location.origin);
  return next.startsWith('/') && origin === location.origin && pathname.startsWith(router.href('/')) ? next : '/';
}

/** The address of a page on the way to a session, which takes along what the person has come for. */
export function onTheWay(path: string, next = wanted()): string {
  return router.href(path, { next: next === '/' ? undefined : next });
}

/** Goes on to the page that the person has come for. Where signing in stands in for it, it follows by itself. */
export function goOn(): void {
  if (own.includes(router.path)) router.go(wanted(), {}, { replace: true });
}
