import type { Place } from '../api/client';

const stored = 'place';

/** Where the person was last in this browser, to begin there. */
export const last = {
  get place(): Place | undefined {
    const text = localStorage.getItem(stored);
    return text ? (JSON.parse(text) as Place) : undefined;
  },
  set place(place: Place | undefined) {
    if (place) localStorage.setItem(stored, JSON.stringify(place));
  },
};
