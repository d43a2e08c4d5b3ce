// What a round of a folder in sync says of what it did.

import type { Reason } from './ports.ts';

export interface Problem {
  path: string;
  reason: Reason;
  error?: unknown;
}

/** What a round did. */
export interface Report {
  up: number;
  down: number;
  deletedHere: number;
  deletedThere: number;
  /** How many files have another place, and were not sent again. */
  moved: number;
  /** Bytes on the wire. */
  sent: number;
  received: number;
  /** How many bytes the files had that went up. */
  uploaded: number;
  /** Names of the copies that were kept. */
  conflicts: string[];
  /** All copies of conflicts in the folder, until somebody has decided. */
  copies: string[];
  problems: Problem[];
  /** How much is absent, where somebody is asked before it is deleted on the server. */
  asks: { absent: number; all: number } | null;
  /** Files that were not as the scan had found them when they were to be sent. */
  changed: string[];
  /** Whether something changed meanwhile, so that another round is needed. */
  isStale: boolean;
  /** Whether the server was set back, so that all was compared anew. */
  isSetBack: boolean;
}

export function emptyReport(): Report {
  const counts = { up: 0, down: 0, deletedHere: 0, deletedThere: 0, moved: 0 };
  const bytes = { sent: 0, received: 0, uploaded: 0 };
  return {
    ...counts,
    ...bytes,
    conflicts: [],
    copies: [],
    problems: [],
    asks: null,
    changed: [],
    isStale: false,
    isSetBack: false,
  };
}

/** What two rounds did, and how it is after the later one. */
export function sumOf(one: Report, other: Report): Report {
  const sum = { ...other, conflicts: [...one.conflicts, ...other.conflicts] };
  sum.isSetBack = one.isSetBack || other.isSetBack;
  const counts = ['up', 'down', 'deletedHere', 'deletedThere', 'moved'];
  const bytes = ['sent', 'received', 'uploaded'];
  for (const key of [...counts, ...bytes] as ['up']) sum[key] += one[key];
  return sum;
}

/** Whether a round changed anything on either side. */
export function hasChanged({ up, down, deletedHere, deletedThere, moved }: Report): boolean {
  return up + down + deletedHere + deletedThere + moved > 0;
}
