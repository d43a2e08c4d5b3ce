import { pairing as german } from '../words/de/pairing.ts';
import { pairing as english } from '../words/en/pairing.ts';
import { codeOf, problemText } from '../words/problem.ts';
import { chosen, t } from '../words/words.svelte.ts';

const WORDS = { en: english, de: german };

/** The words of pairing in the chosen language: they come with its views. */
export function words(): typeof english {
  return WORDS[chosen.language];
}

/** Says what went wrong between two devices. */
export function pairingText(error: unknown): string {
  const known = words().errors[codeOf(error) as keyof typeof english.errors];
  return typeof known === 'string' ? known : problemText(error, t());
}
