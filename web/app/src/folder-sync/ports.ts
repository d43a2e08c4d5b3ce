// What the engine asks of the disk, the server and the memory of the browser. Paths are names with slashes between them, as people read
// them; the empty one is the folder itself.

import type { Head } from './history.ts';
import type { Base, Local, Remote, Stat } from './plan.ts';

/** Why something is not synced. */
export type Reason =
  | 'name'
  | 'link'
  /** It is a workspace of its own. */
  | 'mounted'
  | 'unreadable'
  | 'clash'
  | 'not-empty'
  | 'taken'
  /** It was another one each time it was to be sent. */
  | 'changing'
  | 'failed'
  /** Of what was dropped: the server has a newer one. */
  | 'newer'
  /** Of what was dropped: it was deleted on the server since. */
  | 'deleted';

/** All that is in a folder, with what is passed over; of that nothing is reported absent. */
export interface Tree<One> {
  found: Map<string, One>;
  skipped: Map<string, Reason>;
}

/** It is not what it was when the plan was made: look again. */
export class Changed extends Error {
  override readonly name = 'Changed';

  constructor(
    /** Where it changed. */
    readonly side: 'here' | 'there',
  ) {
    super('it has changed meanwhile');
  }
}

/** Something cannot be synced, for a reason that people can do something about. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(readonly reason: Reason) {
    super(reason);
  }
}

/** The folder is not there any more, on one side: nothing is deleted for that. */
export class RootGone extends Error {
  override readonly name = 'RootGone';

  constructor(readonly side: 'here' | 'there') {
    super('the folder is gone');
  }
}

/** The workspace is encrypted, and was locked: neither side is touched until it is open again. */
export class Locked extends Error {
  override readonly name = 'Locked';
  readonly code = 'locked';

  constructor() {
    super('the workspace is locked');
  }
}

/** A file that has come and is not in its place yet. */
export interface Part {
  file: File;
  drop(): Promise<void>;
}

/** The folder on the disk. What replaces or removes checks first that it finds what the plan knew of. */
export interface Disk {
  scan(signal: AbortSignal): Promise<Tree<Local>>;
  /** A file as it is now. */
  file(path: string): Promise<File | null>;
  makeFolder(path: string): Promise<void>;
  /** Writes a file aside that is to be placed under a name. */
  receive(
    name: string,
    content: ReadableStream<Uint8Array<ArrayBuffer>>,
    signal: AbortSignal,
  ): Promise<Part>;
  /** Puts it in its place, over what is expected there; over nothing where that is null. */
  place(part: Part, path: string, expected: Stat | null): Promise<Stat>;
  /** Gives a file another place in the folder, where nothing is. */
  move(path: string, to: string, expected: Stat): Promise<void>;
  /** Removes a file into the trash. */
  remove(path: string, expected: Stat): Promise<void>;
  /** Removes a folder with nothing in it. */
  removeFolder(path: string): Promise<void>;
}

/** The folder of the workspace. */
export interface Server {
  list(signal: AbortSignal): Promise<Tree<Remote>>;
  /** The newest entry of the log; nothing where somebody else looks after the history, as in an encrypted workspace. */
  head(signal: AbortSignal): Promise<Head | null>;
  /** The hash of an entry that is older than the newest one. */
  hashOf(seq: number, signal: AbortSignal): Promise<string>;
  /** Whether a version has the content of a file. */
  has(path: string, remote: Remote, file: File, signal: AbortSignal): Promise<boolean>;
  read(
    path: string,
    remote: Remote,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
  /** Puts a file over a version, or where nothing is; says how many bytes went there. */
  put(
    path: string,
    file: File,
    over: Remote | null,
    signal: AbortSignal,
  ): Promise<{ remote: Remote; sent: number }>;
  /** Marks a version as a copy that was kept beside another file, made from version `base` of that. */
  mark(
    path: string,
    copy: Remote,
    original: Remote,
    base: number,
    signal: AbortSignal,
  ): Promise<Remote>;
  makeFolder(path: string, signal: AbortSignal): Promise<Remote>;
  /** Gives a file another place, where nothing is. */
  move(path: string, to: string, remote: Remote, signal: AbortSignal): Promise<Remote>;
  /** Deletes a version; a folder only with nothing in it. */
  delete(path: string, remote: Remote, signal: AbortSignal): Promise<void>;
}

/** The merge base. */
export interface Rows {
  all(): Promise<Map<string, Base>>;
  set(path: string, row: Base): Promise<void>;
  delete(path: string): Promise<void>;
  /** Where the history was when all of it was written; nothing before the first time. */
  head(): Promise<Head | null>;
  setHead(head: Head): Promise<void>;
  /** Forgets it all, and where the history was. */
  clear(): Promise<void>;
}

export interface Ports {
  disk: Disk;
  server: Server;
  rows: Rows;
  /** What a content is, as a text that is equal for equal ones. */
  digest: (file: Blob, signal: AbortSignal) => Promise<string>;
  now: () => number;
  /** What stands in the names of copies. */
  label: string;
}
