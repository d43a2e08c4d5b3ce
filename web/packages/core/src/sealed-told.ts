// What the log of a sealed workspace tells of what was there before, and what a page and its worker say to each other about it.

import type { SealedNode } from './sealed-protocol.ts';

/** A file, folder or link that was deleted. */
export interface SealedDeleted {
  /** What it was; its version is that of its deletion. */
  node: SealedNode;
  /** The names of the folders above it, the topmost first. */
  folders: string[];
  /** The entry of the log that deleted it. */
  seq: number;
  /** When that was, by the clock of whoever did it. */
  timeMs: number;
  device: string;
  deviceName: string;
  /** Whether a folder above it is deleted, too. */
  isInDeleted: boolean;
  /** Whether a cleanup has removed its content. */
  isDropped: boolean;
}

/** What was kept, and what it was kept beside. */
export interface SealedConflict {
  copy: SealedNode;
  /** The names of the folders above it, the topmost first. */
  copyFolders: string[];
  /** Nothing where it was deleted. */
  original: SealedNode | null;
  originalFolders: string[];
  /** The id of the node that it conflicts with. */
  originalId: string;
  /** The version of that from which it was made; 0 where they have only a name in common. */
  base: number;
  /** The entry of the log that has kept it. */
  seq: number;
  /** When that was, by the clock of whoever did it. */
  timeMs: number;
  device: string;
  deviceName: string;
}

/** Some of the conflicts, the newest first. */
export interface SealedConflicts {
  conflicts: SealedConflict[];
  /** How many there are of all. */
  count: number;
  next: string | null;
}

/** What somebody decides about a conflict, of what they have seen. */
export interface SealedDecision {
  node: string;
  version: number;
  /** Nothing where there was no original. */
  originalVersion: number | null;
  keep: 'copy' | 'original' | 'both';
  /** What the copy is called from then on where both are kept; as before without. */
  name: string | null;
}

/** A file, folder or link to which something happened. */
export interface SealedHappened {
  /** What it was then; of what was deleted, what it was last. */
  node: SealedNode;
  /** What happened, by the words that servers have for it. */
  happened: string;
  /** The entry with its version before, where it was called otherwise then. */
  oldSeq: number | null;
  /** What it is called now; nothing where it is gone. */
  nameNow: string | null;
  /** The names of the folders above it now, the topmost first. */
  folders: string[];
}

/** What one entry of the log did. */
export interface SealedActivity {
  seq: number;
  /** When that was, by the clock of whoever did it. */
  timeMs: number;
  device: string;
  deviceName: string;
  /** How many changes there were, of which `changes` has the first. */
  count: number;
  changes: SealedHappened[];
}

/** A file, folder or link, and the folders above it, the topmost first. */
export interface SealedPlace {
  node: SealedNode;
  folders: SealedNode[];
}

/** A version of a file, folder or link. */
export interface SealedVersion {
  version: number;
  /** What it was called; nothing where it was deleted. */
  name: string | null;
  /** The entry of the log that brought it. */
  seq: number;
  /** When that was, by the clock of whoever did it. */
  timeMs: number;
  device: string;
  deviceName: string;
  /** Its length in bytes, where it was a file. */
  size: number | null;
  isDeleted: boolean;
  /** Whether a cleanup has removed its content. */
  isDropped: boolean;
}
