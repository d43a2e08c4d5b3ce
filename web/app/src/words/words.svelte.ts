import { de } from './de.ts';
import { en, type Words } from './en.ts';

export const LANGUAGES = { en, de } as const;
export type Language = keyof typeof LANGUAGES;

const KEY = 'syncline.language';

export function isLanguage(text: string | null): text is Language {
  return text !== null && Object.hasOwn(LANGUAGES, text);
}

function preferred(): Language {
  const chosen = localStorage.getItem(KEY);
  if (isLanguage(chosen)) return chosen;
  return navigator.languages.map((tag) => tag.slice(0, 2)).find(isLanguage) ?? 'en';
}

class Chosen {
  #language = $state<Language>(preferred());

  get language(): Language {
    return this.#language;
  }

  set language(language: Language) {
    this.#language = language;
    localStorage.setItem(KEY, language);
  }

  /** Numbers and dates are written as the region of the browser does, where it speaks the language. */
  get locale(): string {
    return navigator.languages.find((tag) => tag.startsWith(this.#language)) ?? this.#language;
  }
}

export const chosen = new Chosen();

/** The words of the chosen language. */
export function t(): Words {
  return LANGUAGES[chosen.language];
}
