import type { Words } from '../words/en.ts';
import { codeOf, problemText } from '../words/problem.ts';

/** Says an error to somebody who has shown the own password. */
export function ownText(error: unknown, words: Words): string {
  const code = codeOf(error);
  if (code === 'wrong_password') return words.account.wrongPassword;
  if (code === 'conflict') return words.account.noPassword;
  return problemText(error, words);
}
