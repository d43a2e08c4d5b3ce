// A sealed workspace, open in a worker of its own. The page fetches what is wanted and hands it in as it came: what it is
// worth, the worker says.

import { WorkerPool, type Lease, type PoolWorker } from './pool.ts';
import type {
  CallName,
  Calls,
  SealedConflicts,
  SealedDeleted,
  SealedFound,
  SealedNode,
  SealedPart,
  SealedPlace,
  SealedShown,
} from './protocol.ts';
import {
  SealedChanges,
  storedHere,
  type SealedSketches,
  type SealedStored,
} from './sealed-changes.ts';
import { SealedFiles } from './sealed-files.ts';
import { SealedHistory, type SealedCall } from './sealed-history.ts';
import { SealedListing } from './sealed-listing.ts';
import { coreError, openSealed } from './sealed-opening.ts';
import { SealedPast } from './sealed-past.ts';
import type { Given } from './sealed-reading.ts';
import type { SpareMemory } from './spare-memory.ts';
import { startWorker } from './start.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** Where a sealed workspace comes from: a server that has no keys to it. */
export interface SealedSource {
  /** The encoded genesis. */
  genesis(): Promise<Bytes>;
  /** The locked keys, those that count first, with their generations. */
  lockedKeys(): AsyncIterable<{ generation: number; bytes: Bytes }>;
  /** Entries of the log after one, as a server frame; `one` where no more than the first is wanted. */
  entries(since: number, one: boolean, signal?: AbortSignal): Promise<Bytes>;
  /** Bytes of a pack, from the first to before the second place; in `memory` of that length, where some is given and that can be. */
  pack(
    id: string,
    start: number,
    end: number,
    signal?: AbortSignal,
    memory?: Bytes,
  ): Promise<Bytes>;
  /** Stores a pack. */
  putPack(id: string, bytes: Bytes, signal?: AbortSignal): Promise<void>;
  /** Sends a commit, again where nobody knows whether it has come: it counts once. */
  commit(message: Bytes): Promise<void>;
  /** What of files is stored that are in no commit yet; without it that is known as long as the page is there. */
  stored?: SealedStored;
  /** Sketches of files that were put; without them the whole of each chunk is sent that was edited. */
  sketches?: SealedSketches;
  /** What lets this account into a workspace of somebody else; in one's own there is none. */
  membership?: {
    /** The identity of this account, if it has one. */
    identity(): Promise<{ public: Bytes; locked: Bytes } | null>;
    /** The keys that the owner has sealed to it, if there are any. */
    envelope(): Promise<Bytes | null>;
  };
}

/** Who changes something: this browser, as its server knows it. */
export interface SealedDevice {
  id: string;
  name: string;
}

/** How far the history of the workspace went when it was read here last, which outlives the page. */
export interface SeenHead {
  /** The last entry, by its number and its hash; none where none was read. */
  get(): { seq: number; hash: string | null };
  set(seq: number, hash: string): void;
  /** The generation of the newest keys of a workspace of somebody else; 0 where none were seen. */
  keys(): number;
  setKeys(generation: number): void;
}

export interface SealedOptions {
  /** The id of the workspace that is to be opened. */
  id: string;
  /** The passphrase, or the recovery key; of a workspace of somebody else the passphrase of one's identity. */
  secret: string;
  device: SealedDevice;
  source: SealedSource;
  /** What was seen before; without it an older history is not known as one. */
  seen?: SeenHead;
  start?: () => PoolWorker;
}

const locked = () => coreError('locked', 'the workspace is locked');

export class SealedWorkspace {
  readonly #pool: WorkerPool;
  readonly #lease: Lease;
  readonly #source: SealedSource;
  readonly #seen: SeenHead | undefined;
  readonly #history: SealedHistory;
  #last: Promise<unknown> = Promise.resolve();
  #isLocked = false;
  /** Its name, which the server does not know. */
  name = '';
  /** What its files hold. */
  readonly files: SealedFiles;
  /** What changes in it. */
  readonly changes: SealedChanges;
  /** What is in it, for whoever keeps a copy. */
  readonly listing: SealedListing;
  /** What was there before, and what happened. */
  readonly past: SealedPast;

  private constructor(
    pool: WorkerPool,
    lease: Lease,
    { source, seen }: Pick<SealedOptions, 'source' | 'seen'>,
  ) {
    this.#pool = pool;
    this.#lease = lease;
    this.#source = source;
    this.#seen = seen;
    const call: SealedCall = (name, ask) => this.#call(name, ask);
    this.files = new SealedFiles({
      source,
      call: (name, ask, moved) => this.#call(name, ask, moved),
      fetch: (wanted, signal, memory) => this.#fetch(wanted, signal, memory),
      isLocked: () => this.#isLocked,
    });
    this.#history = new SealedHistory(source, seen, call);
    this.listing = new SealedListing(call);
    this.past = new SealedPast(source, call);
    this.changes = new SealedChanges({
      source,
      stored: source.stored ?? storedHere(),
      call,
      fetch: (wanted, signal) => this.#fetch(wanted, signal),
      readLog: () => this.#history.readAll(),
    });
  }

  /** Unlocks a workspace; its log is not read yet. Throws a [CoreError], `wrong_key` where the secret is another. */
  static async open({
    id,
    secret,
    device,
    start,
    ...from
  }: SealedOptions): Promise<SealedWorkspace> {
    const pool = new WorkerPool(start ?? startWorker, 1);
    const workspace = new SealedWorkspace(pool, await pool.take(), from);
    try {
      await workspace.#unlock(id, secret, device);
      return workspace;
    } catch (error) {
      await workspace.lock();
      throw error;
    }
  }

  /** One that another device has opened in a worker: it is this object's from now on. */
  static opened(
    pool: WorkerPool,
    lease: Lease,
    { name, ...from }: Pick<SealedOptions, 'source' | 'seen'> & { name: string },
  ): SealedWorkspace {
    const workspace = new SealedWorkspace(pool, lease, from);
    workspace.name = name;
    return workspace;
  }

  async #unlock(id: string, secret: string, device: SealedDevice): Promise<void> {
    const [source, seen] = [this.#source, this.#seen];
    const call = (ask: Calls['sealedOpen']['ask']) => this.#call('sealedOpen', ask);
    ({ name: this.name } = await openSealed({ id, secret, device, source, seen, call }));
  }

  /** The number of the last entry that was folded. */
  get head(): number {
    return this.#history.head;
  }

  /** Whether what is written here counts, as far as the log was read. */
  get mayWrite(): boolean {
    return this.#history.mayWrite;
  }

  /** Whether it is one's own: devices are let in only there. */
  get isOwn(): boolean {
    return this.#source.membership === undefined;
  }

  get isLocked(): boolean {
    return this.#isLocked;
  }

  /** Reads what is new in the log, and checks it; says whether there was anything. Who asks while it is read waits for the same. */
  catchUp(onProgress?: (head: number) => void): Promise<boolean> {
    return this.#history.catchUp(onProgress);
  }

  /** What lies in a folder; that of 32 zeros is the root. */
  list(folder: string): Promise<SealedNode[]> {
    return this.#call('sealedList', { folder });
  }

  /** A folder and those above it, the topmost first, without the root. */
  way(folder: string): Promise<SealedNode[]> {
    return this.#call('sealedWay', { folder });
  }

  /** What has a name that matches, as far as the log was read: up to `limit`, behind the `next` of an answer before. */
  search(query: string, after: string | null, limit: number): Promise<SealedFound> {
    return this.#call('sealedSearch', { query, after, limit });
  }

  /** What the log shows to whoever has no keys. */
  shown(): Promise<SealedShown> {
    return this.#call('sealedShown', null);
  }

  /** What is deleted, what was deleted last first. */
  deleted(): Promise<SealedDeleted[]> {
    return this.#call('sealedDeleted', null);
  }

  /** Conflicts that nobody has decided, the newest first: up to `limit`, behind the `next` of an answer before. */
  conflicts(after: string | null, limit: number): Promise<SealedConflicts> {
    return this.#call('sealedConflicts', { after, limit });
  }

  /** Where a file, folder or link is by now; `no_such` where it is gone. */
  find(node: string): Promise<SealedPlace> {
    return this.#call('sealedFind', { node });
  }

  /** Seals notes to be kept where others may look: only whoever unlocks the workspace reads them. */
  sealNotes(notes: string[]): Promise<Uint8Array<ArrayBuffer>[]> {
    return this.#call('sealedNotes', { notes });
  }

  /** Opens notes; of what is none of this workspace there is nothing. */
  openNotes(sealed: Uint8Array[]): Promise<(string | null)[]> {
    return this.#call('sealedNotesOpen', { sealed });
  }

  /** Overwrites the keys and ends the worker; nothing can be read from then on. */
  async lock(): Promise<void> {
    if (this.#isLocked) return;
    this.#isLocked = true;
    this.name = '';
    await this.#last.catch(() => undefined);
    await this.#lease.end();
    this.#pool.close();
  }

  async #fetch(
    wanted: readonly SealedPart[],
    signal: AbortSignal | undefined,
    memory?: SpareMemory,
  ): Promise<Given[]> {
    const one = async ({ pack, start, end, inlineSeq }: SealedPart) => {
      const isEntry = inlineSeq !== null;
      const bytes = isEntry
        ? await this.#source.entries(inlineSeq - 1, true, signal)
        : await this.#source.pack(pack, start, end, signal, memory?.take(end - start));
      return { bytes, isEntry };
    };
    return Promise.all(wanted.map(one));
  }

  /** One call after the other: a worker answers them in turn. Those that wait when the workspace is locked are not asked any more. */
  #call<Name extends CallName>(
    name: Name,
    ask: Calls[Name]['ask'],
    moved?: Transferable[],
  ): Promise<Calls[Name]['answer']> {
    if (this.#isLocked) return Promise.reject(locked());
    const called = this.#last.then(() => {
      if (this.#isLocked) throw locked();
      this.#history.check(name);
      return this.#lease.call(name, ask, { moved });
    });
    this.#last = called.catch(() => undefined);
    return called;
  }
}
