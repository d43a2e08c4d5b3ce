import { NoConnection, ProblemError } from '@syncline/api';
import { wait } from '../transfers/wait.ts';

const ATTEMPTS_MAX = 7;
const WAIT_MS = 500;

/** Does again what a bad line or a busy server has kept from being done, until the signal says stop: it must be nothing that counts twice. */
export async function persistently<T>(
  work: () => Promise<T>,
  signal = new AbortController().signal,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const isPassing =
        error instanceof NoConnection || (error instanceof ProblemError && error.isPassing);
      if (!isPassing || signal.aborted || attempt === ATTEMPTS_MAX) throw error;
      const after = error instanceof ProblemError ? (error.retryAfter ?? 0) * 1000 : 0;
      await wait(Math.max(after, WAIT_MS * 2 ** (attempt - 1)), signal);
    }
  }
}
