// The pure planner: what a file or folder needs next, from what is in the folder, what the server has, and what both had in common last.
//
// The rules and their words are those of the programs: `docs/design/sync.md`, "Plan", and `crates/sync/src/plan.rs`. What is kept by its
// place here and by its node there: a move is a deletion and a new file to it, and `Move`, `Park` and `Adopt` are not among the operations;
// moves of files that are certain are carried out before (`moves.ts`). `compare` is a `Read` of what the server has, and `blocked` stands for what the
// programs can do and a browser cannot: a folder of the disk has no other name until somebody gives it one.

import { statOfRow } from './stats.ts';

export type Kind = 'file' | 'folder';

/** What a file system says of a file. */
export interface Stat {
  size: number;
  /** Milliseconds since 1970; of a row, -1 where a later change might bear the same time. */
  modifiedMs: number;
}

/** Something in the folder. Folders have no stat. */
export interface Local extends Stat {
  kind: Kind;
  /** What its content is, where it was read. */
  digest: string | null;
  /** When it was looked at, or read. */
  readMs: number;
  /** Whether its content is that of a version of the server, where that was compared. */
  compared: { etag: string; isEqual: boolean } | null;
}

/** Something in the folder of the workspace. */
export interface Remote {
  kind: Kind;
  node: string;
  version: number;
  etag: string;
  size: number;
  /** When its content was changed, where the server knows. */
  modifiedMs?: number | undefined;
}

/** A row of the merge base: what folder and server agreed on last, with what the file system said of it then. */
export interface Base extends Stat {
  kind: Kind;
  node: string;
  version: number;
  /** What the content was; the empty text is that of nothing. */
  digest: string;
}

export type Operation =
  /** Read the file, to learn what its content is. */
  | 'read'
  /** Compare the file with what the server has. */
  | 'compare'
  /** The merge base takes what the server has; the folder needs nothing. */
  | 'accept'
  /** What the file system says of it is remembered; nothing else has changed. */
  | 'refresh'
  /** The merge base forgets it. */
  | 'forget'
  /** Make it in the folder. */
  | 'materialise'
  /** Give it the content that the server has. */
  | 'set-matter'
  /** Keep what is in the folder under another name, marked as a conflict. */
  | 'keep-copy'
  /** Send what is in the folder. */
  | 'propose'
  /** Remove it from the folder, into the trash. */
  | 'remove'
  /** Delete it on the server. */
  | 'propose-delete'
  /** A folder here and a file there: nothing is done, and somebody is told. */
  | 'blocked';

/** Whether something goes by it: that comes after all that is made, and what lies in a folder goes before the folder. */
export function isRemoval(operation: Operation): boolean {
  return operation === 'remove' || operation === 'propose-delete';
}

/** Says what is needed next at a place; nothing where folder and server agree. */
export function decide(
  local: Local | undefined,
  remote: Remote | undefined,
  base: Base | undefined,
): Operation | null {
  if (local && remote && local.kind === remote.kind) {
    // What was something else before has no base.
    return base && base.kind === local.kind && !isSetBack(remote, base)
      ? merge(local, remote, base)
      : withoutBase(local, remote);
  }
  if (local && remote) return ofTwoKinds(local, remote, base);
  if (local) return base?.kind === local.kind ? deletedThere(local, base) : 'propose';
  if (remote) return base?.kind === remote.kind ? deletedHere(remote, base) : 'materialise';
  return base ? 'forget' : null;
}

function isUnchangedThere(remote: Remote, base: Base): boolean {
  return remote.node === base.node && remote.version === base.version;
}

/**
 * Whether a server has an older version than it had, as after it was set back from a backup. Versions only grow: that is none that
 * anybody has made of what is here, and what is here may be nowhere else.
 */
function isSetBack(remote: Remote, base: Base): boolean {
  return remote.node === base.node && remote.version < base.version;
}

/** Whether a file was changed here; nothing where it has to be read to tell. */
function isChangedHere(local: Local, base: Base): boolean | null {
  if (local.digest !== null) return local.digest !== base.digest;
  return local.size === base.size && local.modifiedMs === base.modifiedMs ? false : null;
}

/** Whether a row has what would be remembered of a file that has its content. */
function isRemembered(local: Local, base: Base): boolean {
  if (local.modifiedMs === base.modifiedMs) return true;
  return statOfRow(local, local.readMs).modifiedMs === base.modifiedMs;
}

function merge(local: Local, remote: Remote, base: Base): Operation | null {
  const isNews = !isUnchangedThere(remote, base);
  if (local.kind === 'folder') return isNews ? 'accept' : null;
  const isChanged = isChangedHere(local, base);
  if (isChanged === null) return 'read';
  if (!isNews && isChanged) return 'propose';
  if (!isNews) return isRemembered(local, base) ? null : 'refresh';
  return equality(local, remote) ?? (isChanged ? 'keep-copy' : 'set-matter');
}

/** Nobody knows what they had in common: what is equal becomes one, and all else is kept beside each other. */
function withoutBase(local: Local, remote: Remote): Operation {
  if (local.kind === 'folder') return 'accept';
  return equality(local, remote) ?? 'keep-copy';
}

/** What is needed while file and server may be equal; nothing where they differ. */
function equality(local: Local, remote: Remote): Operation | null {
  if (local.size !== remote.size) return null;
  if (local.compared?.etag !== remote.etag) return 'compare';
  return local.compared.isEqual ? 'accept' : null;
}

function deletedThere(local: Local, base: Base): Operation {
  // A folder goes when it is empty: what was put into it has brought it back by then.
  if (local.kind === 'folder') return 'remove';
  const isChanged = isChangedHere(local, base);
  if (isChanged === null) return 'read';
  // It was changed here and deleted there: the change wins.
  return isChanged ? 'propose' : 'remove';
}

function deletedHere(remote: Remote, base: Base): Operation {
  // It was deleted here and changed there: the change wins.
  return isUnchangedThere(remote, base) ? 'propose-delete' : 'materialise';
}

/** A file here and a folder there, or the other way round. */
function ofTwoKinds(local: Local, remote: Remote, base: Base | undefined): Operation {
  if (base?.kind === local.kind) {
    const gone = deletedThere(local, base);
    if (gone !== 'propose') return gone;
  } else if (base?.kind === remote.kind && isUnchangedThere(remote, base)) {
    return 'propose-delete';
  }
  return local.kind === 'file' ? 'keep-copy' : 'blocked';
}

/** More deletions than this at once are asked about, if they are more than this part of all. */
const ABSENT_MAX = 50;
const ABSENT_PART = 0.3;

/** Of another disk so many are asked about: a program that saves its only file takes its lock away at the same moment. */
const ABSENT_OTHER_MAX = 3;

/**
 * Whether so much is absent from the folder that somebody is asked first. Where nothing is left of what was there it is asked in any case,
 * and where nothing is as it was sooner: a disk may not be where it was, or another one is.
 */
export function isMassDeletion(
  absent: number,
  all: number,
  { isGone, isOther }: { isGone: boolean; isOther: boolean },
): boolean {
  if (isGone && all > 1 && absent > 0) return true;
  const atLeast = isOther ? ABSENT_OTHER_MAX : ABSENT_MAX;
  return absent > atLeast && absent > all * ABSENT_PART;
}

/** Whether no file that both sides had is there any more, whatever it is by now; no folder, where they had no file. */
export function hasLostAll(
  local: ReadonlyMap<string, Local>,
  rows: ReadonlyMap<string, Base>,
): boolean {
  return !hasAny(local, rows, () => true);
}

/** Whether no file that both sides had is in the folder as it was; no folder, where they had no file. */
export function hasNothingOf(
  local: ReadonlyMap<string, Local>,
  rows: ReadonlyMap<string, Base>,
): boolean {
  return !hasAny(local, rows, (here, base) => {
    // Of what was written just then nobody remembers the time.
    const isOfThen = base.modifiedMs < 0 || here.modifiedMs === base.modifiedMs;
    return here.size === base.size && isOfThen;
  });
}

/** Whether any file that both sides had is there and counts; any folder, where they had no file. */
function hasAny(
  local: ReadonlyMap<string, Local>,
  rows: ReadonlyMap<string, Base>,
  counts: (here: Local, base: Base) => boolean,
): boolean {
  const files = [...rows].filter(([, { kind }]) => kind === 'file');
  if (files.length === 0) return [...rows.keys()].some((path) => local.has(path));
  return files.some(([path, base]) => {
    const here = local.get(path);
    return here?.kind === 'file' && counts(here, base);
  });
}
