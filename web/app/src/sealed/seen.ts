// How far this browser has read the history of an encrypted workspace, by the number of its last entry: all that is kept of one, and the server
// knows it, too. A server that shows less than that has lost something, or lies.

import type { SeenHead } from '@syncline/core';

const keyOf = (workspace: string) => `syncline.sealed-head.${workspace}`;

/** What was seen of a workspace, for everybody who uses this browser. */
export function seenOf(workspace: string): SeenHead {
  const key = keyOf(workspace);
  return {
    get: () => {
      const head = Number(localStorage.getItem(key));
      return Number.isSafeInteger(head) && head > 0 ? head : 0;
    },
    set: (head) => {
      try {
        localStorage.setItem(key, String(head));
      } catch {
        // A browser that keeps nothing reads no worse; it only cannot tell.
      }
    },
  };
}
