// Which packs this browser has stored in an encrypted workspace for files that are in no commit yet: where the page went away in the midst of
// a file, and somebody sends it again, these are not sent again. All that is kept of them is their ids and lengths, which the server knows, too, and the
// size of the file and when it was modified.

import type { SealedKept, SealedStored } from '@syncline/core';
import { Database } from '../database.ts';
import { signedInSince } from '../transfers/sketches.ts';

/** How many are kept, of 4 MiB each mostly. */
export const STORED_MAX = 2000;

const STORE = 'packs';

/** Where it is kept: a database outlives a browser that is killed, which loses the last minute of simpler storage. */
export interface Place {
  get(workspace: string): Promise<unknown>;
  set(workspace: string, kept: SealedKept | null): Promise<void>;
}

const database = new Database('syncline-sealed-packs', (made) => made.createObjectStore(STORE));

const browser: Place = {
  get: async (workspace) =>
    (await database.transact([STORE], 'readonly', (made) => made.objectStore(STORE).get(workspace)))
      .result as unknown,
  set: async (workspace, kept) => {
    await database.transact([STORE], 'readwrite', (made) => {
      const store = made.objectStore(STORE);
      return kept ? store.put(kept, workspace) : store.delete(workspace);
    });
  },
};

const isId = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isOf = (value: unknown) => typeof value === 'string' && /^\d+ \d+$/.test(value);
const isLength = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;

/** Reads what was kept; nothing where it is something else. */
function parse(found: unknown): SealedKept | null {
  try {
    const { mark, packs } = (found ?? {}) as Partial<SealedKept>;
    if (typeof mark !== 'string' || !Array.isArray(packs)) return null;
    return {
      mark,
      packs: packs.filter(({ id, length, of }) => isId(id) && isLength(length) && isOf(of)),
    };
  } catch {
    return null;
  }
}

/** What is kept of a workspace: nothing until it was read, which takes less than unlocking. Of two tabs the one that has said something last counts. */
export function storedIn(workspace: string, place: Place = browser): SealedStored {
  const since = signedInSince();
  // What is on its way when somebody signs out would be kept after all was forgotten, for whoever comes next.
  const isLate = () => since !== signedInSince();
  let now: SealedKept | null = null;
  let isSaid = false;
  // A browser that keeps nothing sends it again.
  const lost = () => undefined;
  let turn: Promise<unknown> = place.get(workspace).then((found) => {
    if (!isSaid) now = parse(found);
  }, lost);
  return {
    get: () => now,
    set({ mark, packs }) {
      if (isLate()) return;
      const kept = packs.length > 0 ? { mark, packs: packs.slice(-STORED_MAX) } : null;
      [now, isSaid] = [kept, true];
      turn = turn.then(() => (isLate() ? undefined : place.set(workspace, kept))).catch(lost);
    },
  };
}

/** Forgets what was kept of all workspaces. */
export function forgetStored(): Promise<void> {
  return database.remove();
}
