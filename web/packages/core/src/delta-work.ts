import { ChunkDelta } from '../dist/core.js';
import { Frames } from './frames.ts';
import type { Calls, DeltaLength } from './protocol.ts';
import { BlobSource } from './source.ts';

/** The side of a delta in the worker. */
export class DeltaWork {
  readonly #delta: ChunkDelta;
  readonly #source: BlobSource;
  readonly #old: BlobSource | null;
  readonly #onPart: (bytes: Uint8Array<ArrayBuffer>) => void;

  constructor(
    { file, genesis, session, base }: Calls['deltaBegin']['ask'],
    old: Blob | null,
    onProgress: (done: number) => void,
    onPart: (bytes: Uint8Array<ArrayBuffer>) => void,
  ) {
    this.#delta = new ChunkDelta(genesis, session, base);
    this.#source = new BlobSource(file, onProgress);
    // It is read to and fro.
    this.#old = old && new BlobSource(old, undefined, old.size);
    this.#onPart = onPart;
  }

  async begin(): Promise<Calls['deltaBegin']['answer']> {
    await this.#source.readAhead();
    return (this.#delta.question(this.#source) as Uint8Array<ArrayBuffer> | undefined) ?? null;
  }

  /** There is nothing to ask, so that one call does all: each takes a third of a millisecond. */
  async ofKept(): Promise<DeltaLength> {
    await Promise.all([this.#source.readAhead(), this.#old?.readAhead()]);
    return this.send();
  }

  told(message: Uint8Array): Calls['deltaTold']['answer'] {
    const next = this.#delta.takeTold(message, this.#source);
    return (next as Uint8Array<ArrayBuffer> | undefined) ?? null;
  }

  list(list: Uint8Array): Calls['deltaList']['answer'] {
    return (this.#delta.takeList(list) as Uint8Array<ArrayBuffer> | undefined) ?? null;
  }

  send(): DeltaLength {
    const sink = new Frames(this.#onPart);
    this.#delta.send(this.#source, this.#old, sink);
    return sink.end();
  }

  wanted(answer: Uint8Array): DeltaLength {
    const sink = new Frames(this.#onPart);
    this.#delta.takeAnswer(answer, this.#source, sink);
    return sink.end();
  }

  kept(): Calls['deltaKept']['answer'] {
    return (this.#delta.kept() as Uint8Array<ArrayBuffer> | undefined) ?? null;
  }

  free(): void {
    this.#delta.free();
  }
}
