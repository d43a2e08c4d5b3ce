// Whether the server still has the history in which the merge base was written. One that was set back from a backup has lost a part of it,
// and gives its numbers anew: what it does not have any more was not deleted by anybody, and a version of a number is not the one that was seen.

import type { Ports } from './ports.ts';

/** The newest entry of the log that somebody has heard of. */
export interface Head {
  seq: number;
  hash: string;
}

/**
 * Forgets what folder and server had in common where the server has another history by now: what is equal becomes one again, and all else
 * is kept beside each other. Returns whether that was so. Before anything is listed.
 */
export async function heedHistory(
  { server, rows }: Pick<Ports, 'server' | 'rows'>,
  signal: AbortSignal,
): Promise<boolean> {
  const known = await rows.head();
  if (!known) return false;
  const head = await server.head(signal);
  if (!head || (await isIn(server, known, head, signal))) return false;
  await rows.clear();
  return true;
}

/**
 * Notes where the history is, once the merge base says nothing that is newer. Returns false, and notes nothing, where the server was set back
 * since that was heeded: then it is to be heeded again.
 */
export async function noteHistory(
  { server, rows }: Pick<Ports, 'server' | 'rows'>,
  signal: AbortSignal,
): Promise<boolean> {
  const known = await rows.head();
  const head = await server.head(signal);
  if (!head || head.hash === known?.hash) return true;
  if (known && !(await isIn(server, known, head, signal))) return false;
  await rows.setHead(head);
  return true;
}

/** Whether an entry is in the history that ends with another one. */
async function isIn(
  server: Ports['server'],
  known: Head,
  head: Head,
  signal: AbortSignal,
): Promise<boolean> {
  if (known.seq >= head.seq) return known.seq === head.seq && known.hash === head.hash;
  // Before the first entry all histories are one.
  return known.seq === 0 || (await server.hashOf(known.seq, signal)) === known.hash;
}
