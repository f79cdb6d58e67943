import type { Place } from '../api/client';
import { stored } from '../service';

const key = stored('place');
const keyOf = (tenant: string) => stored(`environment ${tenant}`);

/** The last place in this browser, to start there. */
export const last = {
  get place(): Place | undefined {
    const text = localStorage.getItem(key);
    return text ? (JSON.parse(text) as Place) : undefined;
  },
  set place(place: Place | undefined) {
    if (!place) return;
    localStorage.setItem(key, JSON.stringify(place));
    localStorage.setItem(keyOf(place.tenant), place.environment);
  },
  /** The last environment used in a tenant. */
  environmentIn(tenant: string): string | undefined {
    return localStorage.getItem(keyOf(tenant)) ?? undefined;
  },
};
