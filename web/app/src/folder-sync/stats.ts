// Length and time of a file of the disk, by which it is known without being read; and the rows that remember them.

import type { Base, Remote, Stat } from './plan.ts';

/** A file that was read so soon after its last change may change again, and bear the same time: file systems count in steps. */
const RACY_MS = 2_000;

/** A time that no file has. */
export const NO_TIME = -1;

export function isSameStat(file: Stat | File | null, expected: Stat): boolean {
  if (file === null || file.size !== expected.size) return false;
  const time = 'lastModified' in file ? file.lastModified : file.modifiedMs;
  return time === expected.modifiedMs;
}

/** What a row remembers of a file that was read at a moment. */
export function statOfRow({ size, modifiedMs }: Stat, readMs: number): Stat {
  const isRacy = Math.abs(readMs - modifiedMs) < RACY_MS;
  return { size, modifiedMs: isRacy ? NO_TIME : modifiedMs };
}

/** What both agree on, with what the file system says of it. */
export function rowOf(
  { kind, node, version }: Remote,
  { size, modifiedMs }: Stat,
  digest: string,
): Base {
  return { kind, node, version, size, modifiedMs, digest };
}
