// What the files of a sealed workspace hold, one of them or all of a folder, as streams that the worker fills.

import type { CallName, Calls, SealedPart } from './protocol.ts';
import { readSealed, type Given } from './sealed-reading.ts';
import type { SealedSource } from './sealed.ts';
import type { SpareMemory } from './spare-memory.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** The content of a file, or the one that it had in the version which an entry has brought. */
export interface SealedContent {
  file: string;
  seq?: number;
}

export interface ReadOptions {
  signal?: AbortSignal | undefined;
  /** Hears each time that somebody has got something. */
  onBytes?: () => void;
}

/** What the workspace lends. */
export interface FilesDoor {
  source: SealedSource;
  call<Name extends CallName>(
    name: Name,
    ask: Calls[Name]['ask'],
    moved?: Transferable[],
  ): Promise<Calls[Name]['answer']>;
  fetch(
    wanted: readonly SealedPart[],
    signal: AbortSignal | undefined,
    memory: SpareMemory,
  ): Promise<Given[]>;
  isLocked(): boolean;
}

export class SealedFiles {
  readonly #door: FilesDoor;

  constructor(door: FilesDoor) {
    this.#door = door;
  }

  /**
   * Reads a file. A stream of bytes, where the browser has those: whoever brings memory into it gets the same back with the content. An error
   * comes out of the stream, and what came before it is not the file.
   */
  read(
    { file, seq }: SealedContent,
    { signal, onBytes = () => undefined }: ReadOptions = {},
  ): ReadableStream<Bytes> {
    const begin = async () => {
      if (seq === undefined) return this.#door.call('sealedBegin', { file, entry: null });
      const frame = await this.#door.source.entries(seq - 1, true, signal);
      return this.#door.call('sealedBegin', { file, entry: { seq, frame } });
    };
    return this.#read(begin, { signal, onBytes });
  }

  /** How long a folder is as a ZIP file. */
  async archiveSize(folder: string): Promise<number> {
    const { reading, size } = await this.#door.call('sealedArchive', { folder });
    await this.#door.call('sealedEnd', { reading });
    return size;
  }

  /**
   * Reads a folder with everything in it but links and workspaces of their own, as a ZIP file of this size. The stream is as that of a file;
   * where a file in it cannot be read, a [FileUnreadable] comes out.
   */
  async archive(
    folder: string,
    { signal, onBytes = () => undefined }: ReadOptions = {},
  ): Promise<{ body: ReadableStream<Bytes>; size: number }> {
    const { reading, size } = await this.#door.call('sealedArchive', { folder });
    return { body: this.#read(reading, { signal, onBytes }), size };
  }

  #read(
    begin: number | (() => Promise<number>),
    { signal, onBytes }: { signal: AbortSignal | undefined; onBytes: () => void },
  ): ReadableStream<Bytes> {
    const step = (ask: Calls['sealedStep']['ask']) => {
      const moved = ask.given.map(({ bytes }) => bytes.buffer);
      return this.#door.call('sealedStep', ask, ask.into ? [...moved, ask.into.buffer] : moved);
    };
    const end = (reading: number) =>
      this.#door.call('sealedEnd', { reading }).catch((error: unknown) => {
        // Where the workspace was locked meanwhile, all is forgotten.
        if (this.#door.isLocked()) return null;
        throw error;
      });
    const fetch = (wanted: readonly SealedPart[], memory: SpareMemory) =>
      this.#door.fetch(wanted, signal, memory);
    return readSealed({ begin, step, fetch, end, onBytes }, signal);
  }
}
