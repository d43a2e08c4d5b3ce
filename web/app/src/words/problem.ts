import { NoConnection, ProblemError } from '@syncline/api';
import type { Words } from './en.ts';

/** Those of ours that have a code; what throws them is not loaded for that. */
const WITH_CODE = ['CoreError', 'FileChanged', 'Locked'];

/** Returns the code of an error of the server, or of one of ours. */
export function codeOf(error: unknown): string {
  if (error instanceof ProblemError) return error.code;
  const { name, code } = (error ?? {}) as { name?: string; code?: unknown };
  return WITH_CODE.includes(name ?? '') && typeof code === 'string' ? code : '';
}

/** Says an error in words; the code stands behind those that the page has no words for. */
export function problemText(error: unknown, words: Words): string {
  if (error instanceof NoConnection) return words.errors.unreachable;
  if (error instanceof Error && error.name === 'FileUnreadable') {
    const { path, cause } = error as Error & { path: string };
    return words.errors.unreadable(path, problemText(cause, words));
  }
  // Older browsers say it by a DOMException of this name, newer ones by an error of its own.
  if (error instanceof Error && error.name === 'QuotaExceededError')
    return words.errors.browser_full;
  const code = codeOf(error);
  const known = words.errors[code as keyof Words['errors']];
  if (typeof known === 'string') return known;
  return error instanceof ProblemError
    ? words.errors.other(error.message, code)
    : words.errors.local;
}
