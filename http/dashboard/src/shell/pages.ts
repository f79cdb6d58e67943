import type { Place } from '../api/client';
import type { IconName } from '../components/Icon.svelte';
import type { PlatformRole } from '../queries/platform';
import { pathIn } from '../router/place';
import { shell } from '../words/shell';

export type PageLink = { name: string; path: string; icon: IconName };

/** The pages that the navigation and the command palette lead to, in their order. */
export const pages: PageLink[] = [
  { name: shell.pages.flags, path: 'flags', icon: 'flag' },
  { name: shell.pages.playground, path: 'playground', icon: 'play' },
  { name: shell.pages.cleanup, path: 'cleanup', icon: 'broom' },
  { name: shell.pages.projects, path: 'projects', icon: 'folder' },
  { name: shell.pages.environments, path: 'environments', icon: 'layers' },
  { name: shell.pages.audit, path: 'audit', icon: 'clock' },
  { name: shell.pages.members, path: 'members', icon: 'people' },
  { name: shell.pages.clients, path: 'clients', icon: 'key' },
  { name: shell.pages.usage, path: 'usage', icon: 'chart' },
  { name: shell.pages.billing, path: 'billing', icon: 'card' },
];

/** The same as links at a place. */
export function pagesIn(place: Place): PageLink[] {
  return pages.map((page) => ({ ...page, path: pathIn(place, ...page.path.split('/')) }));
}

const ranks: PlatformRole[] = ['viewer', 'admin', 'super_user'];

type PlatformPage = PageLink & { least: PlatformRole };

const platform: PlatformPage[] = [
  { name: shell.platformPages.service, path: '/platform/service', icon: 'pulse', least: 'admin' },
  { name: shell.platformPages.people, path: '/platform/people', icon: 'people', least: 'admin' },
  { name: shell.platformPages.tenants, path: '/platform/tenants', icon: 'layers', least: 'viewer' },
  { name: shell.platformPages.invitations, path: '/platform/invitations', icon: 'plus', least: 'super_user' },
  { name: shell.platformPages.audit, path: '/platform/audit', icon: 'clock', least: 'admin' },
];

/** The pages of the platform that a role opens. */
export function platformPages(role: PlatformRole | null | undefined): PageLink[] {
  return role ? platform.filter(({ least }) => ranks.indexOf(role) >= ranks.indexOf(least)) : [];
}

/** The link to the platform, for those who have a role there. */
export function platformLink(role: PlatformRole | null | undefined): PageLink[] {
  return platformPages(role)
    .slice(0, 1)
    .map(({ path }) => ({ name: shell.platform, path, icon: 'shield' }));
}
