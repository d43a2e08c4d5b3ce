const KEY = 'syncline.theme';
const THEMES = ['system', 'light', 'dark'] as const;

export type Theme = (typeof THEMES)[number];

class Preferences {
  #theme = $state<Theme>(THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'system');

  constructor() {
    this.#show();
  }

  get theme(): Theme {
    return this.#theme;
  }

  set theme(theme: Theme) {
    this.#theme = theme;
    localStorage.setItem(KEY, theme);
    this.#show();
  }

  #show(): void {
    const { dataset } = document.documentElement;
    if (this.#theme === 'system') delete dataset['theme'];
    else dataset['theme'] = this.#theme;
  }
}

export const preferences = new Preferences();
