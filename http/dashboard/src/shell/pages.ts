import type { Place } from '../api/client';
import type { IconName } from '../components/Icon.svelte';
import {
  type PlatformAct,
  type PlatformRole,
  platformRoleMay,
  type Role,
  roleMay,
  type TenantAct,
} from '../permissions';
import { pathIn } from '../router/place';
import { shell } from '../words/shell';

export type PageLink = { name: string; path: string; icon: IconName };

/** A group of the navigation. */
export type PageGroup = { title?: string; links: PageLink[] };

type TenantPage = PageLink & { act?: TenantAct };

/** The pages in the navigation and the command palette, by group, in order. */
const groups: { title: string; pages: TenantPage[] }[] = [
  {
    title: shell.groups.work,
    pages: [
      { name: shell.pages.flags, path: 'flags', icon: 'flag' },
      { name: shell.pages.segments, path: 'segments', icon: 'people' },
      { name: shell.pages.playground, path: 'playground', icon: 'play' },
      { name: shell.pages.cleanup, path: 'cleanup', icon: 'broom' },
      { name: shell.pages.audit, path: 'audit', icon: 'clock' },
    ],
  },
  {
    title: shell.groups.order,
    pages: [
      { name: shell.pages.projects, path: 'projects', icon: 'folder' },
      { name: shell.pages.environments, path: 'environments', icon: 'layers' },
      { name: shell.pages.flagRules, path: 'flag-rules', icon: 'check' },
    ],
  },
  {
    title: shell.groups.tenant,
    pages: [
      { name: shell.pages.members, path: 'members', icon: 'people' },
      { name: shell.pages.clients, path: 'clients', icon: 'command', act: 'manageClients' },
      { name: shell.pages.keys, path: 'keys', icon: 'key' },
      { name: shell.pages.usage, path: 'usage', icon: 'chart' },
      { name: shell.pages.billing, path: 'billing', icon: 'card' },
      { name: shell.pages.settings, path: 'settings', icon: 'settings' },
    ],
  },
];

/** Returns links to the pages that a role may open at a place, by group. */
export function groupsIn(place: Place, role: Role | null | undefined): PageGroup[] {
  return groups.map(({ title, pages }) => ({
    title,
    links: pages
      .filter(({ act }) => !act || roleMay(role, act))
      .map((page) => ({ ...page, path: pathIn(place, page.path) })),
  }));
}

/** Returns links to the pages that a role may open at a place. */
export const pagesIn = (place: Place, role: Role | null | undefined): PageLink[] =>
  groupsIn(place, role).flatMap(({ links }) => links);

type PlatformPage = PageLink & { act: PlatformAct };

const platform: PlatformPage[] = [
  { name: shell.platformPages.service, path: '/platform/service', icon: 'pulse', act: 'readService' },
  { name: shell.platformPages.people, path: '/platform/people', icon: 'people', act: 'readPeople' },
  { name: shell.platformPages.tenants, path: '/platform/tenants', icon: 'layers', act: 'readTenants' },
  { name: shell.platformPages.invitations, path: '/platform/invitations', icon: 'plus', act: 'manageInvitations' },
  { name: shell.platformPages.audit, path: '/platform/audit', icon: 'clock', act: 'readTrail' },
];

/** Returns the platform's pages that a role may open. */
export function platformPages(role: PlatformRole | null | undefined): PageLink[] {
  return platform.filter(({ act }) => platformRoleMay(role, act));
}

/** Returns the link to the platform for people with a role there. */
export function platformLink(role: PlatformRole | null | undefined): PageLink[] {
  return platformPages(role)
    .slice(0, 1)
    .map(({ path }) => ({ name: shell.platform, path, icon: 'shield' }));
}
