import { stored } from '../service';
import { session } from '../session/session.svelte';

const maxRecent = 6;

const keyOf = (tenant: string) => stored(`recent ${session.user?.id} ${tenant}`);

/** The flags of a tenant that the person looked at in this browser, the last first. */
export function recentFlags(tenant: string): string[] {
  const text = localStorage.getItem(keyOf(tenant));
  return text ? (JSON.parse(text) as string[]) : [];
}

/** Notes that the person looks at a flag. */
export function noteRecent(tenant: string, key: string): void {
  keep(tenant, [key, ...without(tenant, key)]);
}

/** Forgets a flag that is gone. */
export function forgetRecent(tenant: string, key: string): void {
  keep(tenant, without(tenant, key));
}

const without = (tenant: string, key: string) => recentFlags(tenant).filter((other) => other !== key);

function keep(tenant: string, flags: string[]): void {
  localStorage.setItem(keyOf(tenant), JSON.stringify(flags.slice(0, maxRecent)));
}
