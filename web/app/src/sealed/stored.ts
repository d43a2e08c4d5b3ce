// Which packs this browser has stored in an encrypted workspace for files that are in no commit yet: where the page went away in the midst of
// a file, and somebody sends it again, these are not sent again. All that is kept of them is their ids and lengths, which the server knows, too, and the
// size of the file and when it was modified.

import type { SealedKept, SealedStored } from '@syncline/core';

/** How many are kept, of 4 MiB each mostly. */
export const STORED_MAX = 2000;

const PREFIX = 'syncline.sealed-packs.';

const isId = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isOf = (value: unknown) => typeof value === 'string' && /^\d+ \d+$/.test(value);
const isLength = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;

/** Reads what was kept; nothing where it is something else. */
function parse(text: string | null): SealedKept | null {
  try {
    const { mark, packs } = JSON.parse(text ?? '{}') as Partial<SealedKept>;
    if (typeof mark !== 'string' || !Array.isArray(packs)) return null;
    return {
      mark,
      packs: packs.filter(({ id, length, of }) => isId(id) && isLength(length) && isOf(of)),
    };
  } catch {
    return null;
  }
}

export function storedIn(workspace: string, place: Storage = localStorage): SealedStored {
  const key = PREFIX + workspace;
  return {
    get: () => parse(place.getItem(key)),
    set({ mark, packs }) {
      try {
        if (packs.length === 0) place.removeItem(key);
        else place.setItem(key, JSON.stringify({ mark, packs: packs.slice(-STORED_MAX) }));
      } catch {
        // A browser that keeps nothing sends it again.
      }
    },
  };
}

/** Forgets what was kept of all workspaces. */
export function forgetStored(place: Storage = localStorage): void {
  for (let at = place.length - 1; at >= 0; at--) {
    const key = place.key(at);
    if (key?.startsWith(PREFIX)) place.removeItem(key);
  }
}
