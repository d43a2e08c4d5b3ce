import { ProblemError } from '@syncline/api';
import type { Words } from '../words/en.ts';
import { problemText } from '../words/problem.ts';

/** Says an error to somebody who has shown the own password. */
export function ownText(error: unknown, words: Words): string {
  const code = error instanceof ProblemError ? error.code : '';
  if (code === 'wrong_password') return words.account.wrongPassword;
  if (code === 'conflict') return words.account.noPassword;
  return problemText(error, words);
}
