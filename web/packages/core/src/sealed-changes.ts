// What a page changes in a sealed workspace: packs first, then the commit, and then the log says what became of it.

import { CoreError } from './error.ts';
import type { CallName, Calls, SealedChange, SealedDone, SealedPart } from './protocol.ts';
import type { SealedSource } from './sealed.ts';

/** How often a file is packed anew because a cleanup came in between. */
const TRIES = 3;

/** How many removals can be taken back. */
const REMOVALS_MAX = 20;

interface Given {
  bytes: Uint8Array;
  isEntry: boolean;
}

/** What the workspace lends. */
export interface SealedDoor {
  source: SealedSource;
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

/** A removal, and how it is taken back. */
export interface SealedRemoval extends SealedDone {
  undo: () => Promise<SealedDone>;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof CoreError && error.code === code;
}

export class SealedChanges {
  readonly #door: SealedDoor;
  readonly #removals: number[] = [];

  constructor(door: SealedDoor) {
    this.#door = door;
  }

  makeFolder(folder: string, name: string): Promise<SealedDone> {
    return this.#change({ kind: 'folder', folder, name });
  }

  /** Moves or renames a file, folder or link. */
  relocate(node: string, folder: string, name: string): Promise<SealedDone> {
    return this.#change({ kind: 'relocate', node, folder, name });
  }

  /** Deletes what somebody has seen in these versions, with all that is in it; the versions stay. */
  async remove(nodes: readonly { id: string; version: number }[]): Promise<SealedRemoval> {
    await this.#door.readLog();
    const removal = await this.#door.call('sealedChange', {
      kind: 'remove',
      nodes: nodes.map(({ id, version }) => ({ id, version })),
    });
    this.#removals.push(removal);
    const oldest = this.#removals.length > REMOVALS_MAX ? this.#removals.shift() : undefined;
    if (oldest !== undefined) await this.#forget(oldest);
    const done = await this.#carryOut(removal);
    return { ...done, undo: () => this.#change({ kind: 'restore', removal }) };
  }

  /**
   * Puts a file: over the version of one that somebody has seen, beside it where somebody changes that at the same moment, or where nothing
   * of the name is there. Only chunks that the log does not have are sent.
   */
  async put(ask: Calls['sealedPut']['ask'], hooks: SealedPutHooks = {}): Promise<SealedDone> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#put(ask, hooks);
      } catch (error) {
        if (!isCode(error, 'fenced') || attempt === TRIES) throw error;
      }
    }
  }

  async #put(
    ask: Calls['sealedPut']['ask'],
    { signal, onProgress }: SealedPutHooks,
  ): Promise<SealedDone> {
    const { call, fetch, readLog, source } = this.#door;
    await readLog();
    const deed = await call('sealedPut', ask);
    try {
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
          }
          onProgress?.(step.done, sent);
        };
        sending = send();
        sending.catch(() => undefined);
        isOver = step.isOver;
      }
      await sending;
      signal?.throwIfAborted();
      return await this.#carryOut(deed);
    } finally {
      await this.#forget(deed);
    }
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
  async #carryOut(deed: number): Promise<SealedDone> {
    const { call, readLog, source } = this.#door;
    for (;;) {
      const message = await call('sealedPropose', { deed });
      if (message !== null) {
        await source.commit(message);
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
