import type { IconName } from '../components/Icon.svelte';
import { shell } from '../words/shell';

export type PageLink = { name: string; path: string; icon: IconName };

/** The pages that the navigation and the command palette lead to, in their order. */
export const pages: PageLink[] = [
  { name: shell.pages.flags, path: 'flags', icon: 'flag' },
  { name: shell.pages.cleanup, path: 'cleanup', icon: 'broom' },
  { name: shell.pages.projects, path: 'projects', icon: 'folder' },
  { name: shell.pages.environments, path: 'environments', icon: 'layers' },
  { name: shell.pages.audit, path: 'audit', icon: 'clock' },
  { name: shell.pages.members, path: 'members', icon: 'people' },
  { name: shell.pages.clients, path: 'clients', icon: 'key' },
  { name: shell.pages.usage, path: 'usage', icon: 'chart' },
];
