import { stored } from '../service';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const key = stored('theme');

class Appearance {
  #theme = $state<Theme>(themes.find((t) => t === localStorage.getItem(key)) ?? 'system');

  constructor() {
    this.#apply();
  }

  get theme(): Theme {
    return this.#theme;
  }

  set theme(theme: Theme) {
    this.#theme = theme;
    localStorage.setItem(key, theme);
    this.#apply();
  }

  #apply(): void {
    if (this.#theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.#theme;
  }
}

/** Light, dark, or the system's setting. It is stored in this browser. */
export const appearance = new Appearance();
