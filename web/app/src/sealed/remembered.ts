// Which files were on their way into an encrypted workspace, kept for the page that comes after this one. Their names stand in notes that only
// whoever unlocks the workspace reads. A handle of a file has its name, so none is kept: somebody picks the file again.

import type { SealedNode, SealedWorkspace } from '@syncline/core';
import type { Wanted } from '../transfers/matching.ts';
import { Memory, type Kept } from '../transfers/memory.ts';

/** A version of a file. */
export type Over = Pick<SealedNode, 'id' | 'version'>;

/** The version of what is there; nothing where that is no file. */
export function overOf(found: SealedNode | undefined): Over | null {
  return found?.kind === 'file' ? { id: found.id, version: found.version } : null;
}

/** A file that is to be put, and where. */
export interface Unput extends Wanted {
  key: string;
  /** The folder that was open, and those below it into which it goes. */
  folder: string;
  below: readonly string[];
  /** What it is to be called, which is another name where that of the file was taken. */
  target: string;
  /** The version that it is to replace, where somebody has said so. */
  over: Over | null;
}

interface Noted extends Kept {
  workspace: string;
  note: Uint8Array<ArrayBuffer>;
}

const memory = new Memory<Noted>('syncline-sealed-transfers');

export class UnputMemory {
  /** What is asked for comes in its turn: who forgets has remembered before. */
  #turn: Promise<void> = Promise.resolve();

  constructor(
    readonly open: SealedWorkspace,
    readonly workspace: string,
    readonly account: string,
  ) {}

  /** A browser that keeps nothing remembers nothing, and sends no less. */
  #inTurn(deed: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(deed).catch(() => undefined);
    return this.#turn;
  }

  /** Remembers what is to be put, or what has become of it. Nobody waits for it who sends. */
  remember(list: readonly Unput[]): Promise<void> {
    return this.#inTurn(async () => {
      const notes = await this.open.sealNotes(list.map((one) => JSON.stringify(one)));
      const { workspace, account } = this;
      const kept = list.flatMap(({ key }, at) => {
        const note = notes[at];
        return note ? [{ key, account, workspace, note }] : [];
      });
      await memory.remember(kept);
    });
  }

  forget(keys: readonly string[]): Promise<void> {
    return this.#inTurn(() => memory.forget(keys));
  }

  /** What was to be put on pages that are gone. */
  async adopt(): Promise<Unput[]> {
    const kept = await memory.adopt(this.account, ({ workspace }) => workspace === this.workspace);
    const opened = await this.open.openNotes(kept.map(({ note }) => note));
    const read = opened.map((text, at) => unputOf(text, kept[at]?.key ?? ''));
    const unreadable = kept.filter((_, at) => !read[at]);
    if (unreadable.length > 0) void this.forget(unreadable.map(({ key }) => key));
    return read.filter((one) => one !== null);
  }
}

/** Forgets all that an account was putting, as when it signs out. */
export function forgetUnput(account: string): Promise<void> {
  return memory.forgetAll(account);
}

const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number';

/** Reads a note; nothing where another program has written it otherwise. */
function unputOf(text: string | null, key: string): Unput | null {
  if (text === null) return null;
  try {
    const found = JSON.parse(text) as Unput;
    const { folder, below, name, target, path, size, modifiedMs, over } = found;
    const isWhole =
      [folder, name, target, path].every(isText) &&
      [size, modifiedMs].every(isNumber) &&
      (over === null || (isText(over.id) && isNumber(over.version))) &&
      Array.isArray(below) &&
      below.every(isText);
    return isWhole ? { ...found, key } : null;
  } catch {
    return null;
  }
}
