// What a page changes in a sealed workspace: packs first, then the commit, and then the log says what became of it.

import { CoreError, failedOf } from './error.ts';
import type {
  CallName,
  Calls,
  SealedChange,
  SealedDecision,
  SealedDone,
  SealedKept,
  SealedPart,
  SealedPut,
  SealedSketch,
} from './protocol.ts';
import type { SealedSource } from './sealed.ts';

/** How often a file is packed anew because a cleanup came in between. */
const TRIES = 3;

/** How many removals, moves, copies and decisions can be taken back. */
const UNDOABLE_MAX = 20;

interface Given {
  bytes: Uint8Array;
  isEntry: boolean;
}

/** Which packs were stored for files that are in no commit yet, which outlives the page: what was sent once is not sent again. */
export interface SealedStored {
  get(): SealedKept | null;
  set(kept: SealedKept): void;
}

/** Where it does not outlive the page. */
export function storedHere(): SealedStored {
  let kept: ReturnType<SealedStored['get']> = null;
  return { get: () => kept, set: (now) => void (kept = now) };
}

/**
 * Sketches of files that were put here: of the next version only what has changed is sent. They are a cache, and nobody reads them without the
 * keys.
 */
export interface SealedSketches {
  get(name: string): Promise<Uint8Array | null>;
  /** Keeps one in the place of that of the version before, if there was one. */
  keep(sketch: SealedSketch, before: string | null): Promise<void>;
}

/** What the workspace lends. */
export interface SealedDoor {
  source: SealedSource;
  stored: SealedStored;
  call<Name extends CallName>(name: Name, ask: Calls[Name]['ask']): Promise<Calls[Name]['answer']>;
  fetch(wanted: readonly SealedPart[], signal: AbortSignal | undefined): Promise<Given[]>;
  /** Reads everything that stands in the log by now. */
  readLog(): Promise<void>;
}

export interface SealedPutHooks {
  signal?: AbortSignal;
  /** Hears how many bytes of the file were read, and how many bytes of packs are stored. */
  onProgress?: (done: number, sent: number) => void;
}

/** What somebody has seen. */
interface Seen {
  id: string;
  version: number;
}

/** What became of a file that was put. */
export interface SealedPutDone extends SealedDone {
  /** How many bytes were sent for it: packs, and commits with what travels in them. */
  sent: number;
}

/** A removal, a move, a copy or a decision, and how it is taken back. */
export interface SealedUndoable extends SealedDone {
  undo: () => Promise<SealedDone>;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof CoreError && error.code === code;
}

export class SealedChanges {
  readonly #door: SealedDoor;
  readonly #undoable: number[] = [];

  constructor(door: SealedDoor) {
    this.#door = door;
  }

  makeFolder(folder: string, name: string): Promise<SealedDone> {
    return this.#change({ kind: 'folder', folder, name });
  }

  /** Deletes what somebody has seen in these versions, with all that is in it; the versions stay. */
  remove(nodes: readonly { id: string; version: number }[]): Promise<SealedUndoable> {
    const seen = nodes.map(({ id, version }) => ({ id, version }));
    return this.#changeUndoably({ kind: 'remove', nodes: seen });
  }

  /**
   * Moves what somebody has seen in these versions into a folder, under these names, or renames it where it is; all of it, or nothing where a
   * name is taken.
   */
  move(
    nodes: readonly { id: string; version: number; name: string }[],
    folder: string,
  ): Promise<SealedUndoable> {
    const seen = nodes.map(({ id, version, name }) => ({ id, version, name }));
    return this.#changeUndoably({ kind: 'move', nodes: seen, folder });
  }

  /** Copies nodes, each with all that is in it, into a folder under these names; no content is sent. All of it, or nothing where a name is taken. */
  copy(nodes: readonly { id: string; name: string }[], folder: string): Promise<SealedUndoable> {
    const named = nodes.map(({ id, name }) => ({ id, name }));
    return this.#changeUndoably({ kind: 'copy', nodes: named, folder });
  }

  /** Moves a file that somebody has seen in this version to where nothing is, for good. */
  moveOne({ id, version }: Seen, folder: string, name: string): Promise<SealedDone> {
    return this.#change({ kind: 'move', nodes: [{ id, version, name }], folder });
  }

  /** Deletes what somebody has seen in this version, for good; a folder only with nothing in it. */
  removeOne({ id, version }: Seen): Promise<SealedDone> {
    return this.#change({ kind: 'removeOne', node: id, version });
  }

  /** Marks a file as a copy that was kept beside another one, made from this version of that. */
  mark({ id, version }: Seen, original: Seen): Promise<SealedDone> {
    const beside = { original: original.id, base: original.version };
    return this.#change({ kind: 'mark', node: id, version, ...beside });
  }

  /** Brings back what was deleted, of a folder what was deleted with it, too; what has its name by now is let be. */
  bringBack(nodes: readonly string[]): Promise<SealedDone> {
    return this.#change({ kind: 'bringBack', nodes: [...nodes] });
  }

  /** Makes a file again what it was in the version that an entry has brought, where it is and as it is called by now. */
  async revert(node: string, seq: number): Promise<SealedDone> {
    const frame = await this.#door.source.entries(seq - 1, true);
    return this.#change({ kind: 'revert', node, entry: { seq, frame } });
  }

  /** Decides about a conflict, where both sides are as somebody has seen them; `changed` otherwise, and nothing is. */
  decide(decision: SealedDecision): Promise<SealedUndoable> {
    return this.#changeUndoably({ kind: 'decide', ...decision });
  }

  async #changeUndoably(change: SealedChange): Promise<SealedUndoable> {
    await this.#door.readLog();
    const deed = await this.#door.call('sealedChange', change);
    this.#undoable.push(deed);
    const oldest = this.#undoable.length > UNDOABLE_MAX ? this.#undoable.shift() : undefined;
    if (oldest !== undefined) await this.#forget(oldest);
    const done = await this.#carryOut(deed);
    return { ...done, undo: () => this.#change({ kind: 'restore', deed }) };
  }

  /**
   * Puts a file: over the version of one that somebody has seen, beside it where somebody changes that at the same moment, or where nothing
   * of the name is there. Only chunks that the log does not have are sent, and of these none that were stored before, when something came in
   * between.
   */
  async put(ask: SealedPut, hooks: SealedPutHooks = {}): Promise<SealedPutDone> {
    let sent = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        const done = await this.#put(ask, hooks, (bytes) => (sent += bytes));
        return { ...done, sent };
      } catch (error) {
        if (!isCode(error, 'fenced') || attempt === TRIES) throw error;
      }
    }
  }

  async #put(
    ask: SealedPut,
    { signal, onProgress }: SealedPutHooks,
    onSent: (bytes: number) => void,
  ): Promise<SealedDone> {
    const { call, fetch, readLog, source, stored } = this.#door;
    await readLog();
    const of = `${String(ask.file.size)} ${String(ask.file.lastModified)}`;
    const before = stored.get();
    const packs = before?.packs.filter((pack) => pack.of === of) ?? [];
    const kept = before && packs.length > 0 ? { mark: before.mark, packs } : null;
    const { deed, mark, base } = await call('sealedPut', { ...ask, kept });
    try {
      const sketch = base === null ? null : await source.sketches?.get(base);
      if (sketch) await call('sealedPutSketch', { deed, sketch });
      let wanted = await call('sealedKnown', { deed, given: [] });
      while (wanted.length > 0) {
        signal?.throwIfAborted();
        wanted = await call('sealedKnown', { deed, given: await fetch(wanted, signal) });
      }
      let sent = 0;
      let sending = Promise.resolve();
      for (let isOver = false; !isOver;) {
        signal?.throwIfAborted();
        const step = await call('sealedPack', { deed });
        // While one pack is on its way the next one is filled, and no more than that is in memory.
        await sending;
        const send = async () => {
          for (const { id, bytes } of step.packs) {
            // Who stores it may take it away.
            const { length } = bytes;
            await source.putPack(id, bytes, signal);
            sent += length;
            onSent(length);
            stored.set({ mark, packs: [...this.#storedAt(mark), { id, length, of }] });
          }
          onProgress?.(step.done, sent);
        };
        sending = send();
        sending.catch(() => undefined);
        isOver = step.isOver;
      }
      await sending;
      // A browser refuses to read a file that has changed: what was read of it may be half of one and half of another.
      const look = ask.file.slice(0, 1).arrayBuffer();
      await look.catch((error: unknown) => {
        throw new CoreError(failedOf(error));
      });
      signal?.throwIfAborted();
      const done = await this.#carryOut(deed, onSent);
      stored.set({ mark, packs: this.#storedAt(mark).filter((pack) => pack.of !== of) });
      await this.#keepSketch(deed, base);
      return done;
    } finally {
      await this.#forget(deed);
    }
  }

  /** The new version is there, whatever becomes of its sketch. */
  async #keepSketch(deed: number, base: string | null): Promise<void> {
    const { call, source } = this.#door;
    if (!source.sketches) return;
    const sketch = await call('sealedTakeSketch', { deed }).catch(() => null);
    if (sketch) void source.sketches.keep(sketch, base).catch(() => undefined);
  }

  /** How many bytes are stored of files that something came in between of. */
  get unfinished(): number {
    const packs = this.#door.stored.get()?.packs ?? [];
    return packs.reduce((sum, { length }) => sum + length, 0);
  }

  /** Forgets them: a cleanup removes them. */
  giveUp(): void {
    this.#door.stored.set({ mark: '', packs: [] });
  }

  /** What is stored and in no commit, as far as it counts now. */
  #storedAt(mark: string): SealedKept['packs'] {
    const kept = this.#door.stored.get();
    return kept?.mark === mark ? kept.packs : [];
  }

  async #change(change: SealedChange): Promise<SealedDone> {
    await this.#door.readLog();
    const deed = await this.#door.call('sealedChange', change);
    try {
      return await this.#carryOut(deed);
    } finally {
      await this.#forget(deed);
    }
  }

  /** Proposes until it stands, as whatever it is by then. */
  async #carryOut(
    deed: number,
    onSent: (bytes: number) => void = () => undefined,
  ): Promise<SealedDone> {
    const { call, readLog, source } = this.#door;
    for (;;) {
      const message = await call('sealedPropose', { deed });
      if (message !== null) {
        const { length } = message;
        await source.commit(message);
        onSent(length);
        await readLog();
      }
      const done = await call('sealedSettle', { deed });
      if (done.isOver) return done;
    }
  }

  async #forget(deed: number): Promise<void> {
    // Where the workspace was locked meanwhile, all is forgotten.
    await this.#door.call('sealedForget', { deed }).catch(() => undefined);
  }
}
