// How far this browser has read the history of an encrypted workspace, by the number of its last entry: all that is kept of one, and the server
// knows it, too; and of those of others of which generation the keys were. A server that shows less than that has lost something, or lies.

import type { SeenHead } from '@syncline/core';

function numberOf(key: string): number {
  const number = Number(localStorage.getItem(key));
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing reads no worse; it only cannot tell.
  }
}

/** What was seen of a workspace, for everybody who uses this browser. */
export function seenOf(workspace: string): SeenHead {
  const head = `syncline.sealed-head.${workspace}`;
  const keys = `syncline.sealed-keys.${workspace}`;
  return {
    get: () => numberOf(head),
    set: (seen) => keep(head, String(seen)),
    keys: () => numberOf(keys),
    setKeys: (generation) => keep(keys, String(generation)),
  };
}

const comparedKey = (workspace: string) => `syncline.sealed-compared.${workspace}`;

/** Whether somebody here has said that the id of a workspace is the one that its owner means. */
export function isCompared(workspace: string): boolean {
  return localStorage.getItem(comparedKey(workspace)) !== null;
}

export function setCompared(workspace: string): void {
  keep(comparedKey(workspace), 'yes');
}
