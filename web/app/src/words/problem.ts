import { NoConnection, ProblemError } from '@syncline/api';
import type { Words } from './en.ts';

/** Returns the code of an error of the server or of the core; the latter is not loaded for that. */
export function codeOf(error: unknown): string {
  if (error instanceof ProblemError) return error.code;
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  return name === 'CoreError' && typeof code === 'string' ? code : '';
}

/** Says an error in words; the code stands behind those that the page has no words for. */
export function problemText(error: unknown, words: Words): string {
  if (error instanceof NoConnection) return words.errors.unreachable;
  const code = codeOf(error);
  const known = words.errors[code as keyof Words['errors']];
  if (typeof known === 'string') return known;
  return error instanceof ProblemError
    ? words.errors.other(error.message, code)
    : words.errors.local;
}
