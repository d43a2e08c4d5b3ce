import { storage as german } from '../words/de/storage.ts';
import { storage as english } from '../words/en/storage.ts';
import { chosen } from '../words/words.svelte.ts';

const WORDS = { en: english, de: german };

/** The words of this page in the chosen language: they come with it, and not with the first page. */
export function words(): typeof english {
  return WORDS[chosen.language];
}
