export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const stored = 'theme';

class Chosen {
  #theme = $state<Theme>(themes.find((t) => t === localStorage.getItem(stored)) ?? 'system');

  constructor() {
    this.#apply();
  }

  get theme(): Theme {
    return this.#theme;
  }

  set theme(theme: Theme) {
    this.#theme = theme;
    localStorage.setItem(stored, theme);
    this.#apply();
  }

  #apply(): void {
    if (this.#theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.#theme;
  }
}

/** Light, dark, or as the system has it. It is remembered in this browser. */
export const chosen = new Chosen();
