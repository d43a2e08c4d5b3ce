import { NoConnection, ProblemError } from '@syncline/api';
import type { Words } from './en.ts';

/** Says an error in words; the code stands behind those that the page has no words for. */
export function problemText(error: unknown, words: Words): string {
  if (error instanceof NoConnection) return words.errors.unreachable;
  if (!(error instanceof ProblemError)) return words.errors.local;
  const known = words.errors[error.code as keyof Words['errors']];
  return typeof known === 'string' ? known : words.errors.other(error.message, error.code);
}
