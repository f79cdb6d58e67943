import type { Place } from '../api/client';

const stored = 'place';
const storedOf = (tenant: string) => `environment ${tenant}`;

/** Where the person was last in this browser, to begin there. */
export const last = {
  get place(): Place | undefined {
    const text = localStorage.getItem(stored);
    return text ? (JSON.parse(text) as Place) : undefined;
  },
  set place(place: Place | undefined) {
    if (!place) return;
    localStorage.setItem(stored, JSON.stringify(place));
    localStorage.setItem(storedOf(place.tenant), place.environment);
  },
  /** The environment that was used last in a tenant. */
  environmentIn(tenant: string): string | undefined {
    return localStorage.getItem(storedOf(tenant)) ?? undefined;
  },
};
