import { join as german } from '../words/de/join.ts';
import { join as english } from '../words/en/join.ts';
import { chosen } from '../words/words.svelte.ts';

const WORDS = { en: english, de: german };

/** The words of an invitation in the chosen language: they come with its page. */
export function words(): typeof english {
  return WORDS[chosen.language];
}
