import { loadCore } from '../core.ts';
import { digestOf } from './content.ts';

/** What a content is, as a text that is equal for equal ones. */
export const digest = async (file: Blob, signal: AbortSignal): Promise<string> =>
  digestOf(await loadCore(), file, signal);

let turn: Promise<unknown> = Promise.resolve();

/** The same, of one file after the other: each takes a worker for as long as the file is read, and others want one, too. */
export function digestInTurn(file: Blob, signal: AbortSignal): Promise<string> {
  const done = turn.then(() => {
    signal.throwIfAborted();
    return digest(file, signal);
  });
  turn = done.catch(() => undefined);
  return done;
}
