// How far this browser has read the history of an encrypted workspace, by the number and the hash of its last entry: all that is kept of one,
// and the server knows both, too; and of those of others of which generation the keys were. A server that shows less than that, or
// something else, or calls it plain, has lost something, or lies.

import type { SeenHead } from '@syncline/core';

function numberOf(key: string): number {
  const number = Number(localStorage.getItem(key));
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}

/** Reads a head; there were ones without a hash. */
function headOf(key: string): ReturnType<SeenHead['get']> {
  const [, seq, hash] =
    /^(\d{1,15})(?: ([0-9a-f]{64}))?$/.exec(localStorage.getItem(key) ?? '') ?? [];
  return { seq: Number(seq ?? 0), hash: hash ?? null };
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing reads no worse; it only cannot tell.
  }
}

/** What is kept of one of which nothing was read: that it is encrypted. */
const UNREAD = '0';

const headKey = (workspace: string) => `syncline.sealed-head.${workspace}`;

/** Forgets how far the history was read: somebody says that the server was set back. That it is encrypted is still known. */
export function forgetHead(workspace: string): void {
  keep(headKey(workspace), UNREAD);
}

/** Notes that a workspace is encrypted, before anything of it is read: it was opened, or made, here. */
export function noteSealed(workspace: string): void {
  if (!isKnownSealed(workspace)) keep(headKey(workspace), UNREAD);
}

/** Whether a workspace was opened or made here, so that a server that calls it plain lies. */
export function isKnownSealed(workspace: string): boolean {
  return localStorage.getItem(headKey(workspace)) !== null;
}

/** What was seen of a workspace, for everybody who uses this browser. */
export function seenOf(workspace: string): SeenHead {
  const head = headKey(workspace);
  const keys = `syncline.sealed-keys.${workspace}`;
  return {
    get: () => headOf(head),
    set: (seq, hash) => keep(head, `${seq} ${hash}`),
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
