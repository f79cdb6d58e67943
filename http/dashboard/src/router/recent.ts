import { stored } from '../service';
import { session } from '../session/session.svelte';

const maxRecent = 6;

const keyOf = (tenant: string) => stored(`recent ${session.user?.id} ${tenant}`);

/** Returns the flags of a tenant that the person opened in this browser, the last first. */
export function recentFlags(tenant: string): string[] {
  const text = localStorage.getItem(keyOf(tenant));
  return text ? (JSON.parse(text) as string[]) : [];
}

/** Records that the person opened a flag. */
export function noteRecent(tenant: string, key: string): void {
  keep(tenant, [key, ...without(tenant, key)]);
}

/** Removes a deleted flag. */
export function forgetRecent(tenant: string, key: string): void {
  keep(tenant, without(tenant, key));
}

const without = (tenant: string, key: string) => recentFlags(tenant).filter((other) => other !== key);

function keep(tenant: string, flags: string[]): void {
  localStorage.setItem(keyOf(tenant), JSON.stringify(flags.slice(0, maxRecent)));
}
