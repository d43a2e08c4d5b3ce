import { BlockDelta } from '../dist/core.js';
import { Frames } from './frames.ts';
import type { Calls, DeltaLength } from './protocol.ts';
import { BlobSource } from './source.ts';

/** The side of a delta of the paper in the worker. */
export class BlockWork {
  readonly #delta: BlockDelta;
  readonly #source: BlobSource;
  readonly #onPart: (bytes: Uint8Array<ArrayBuffer>) => void;

  constructor(
    { file, genesis, session, tuning, isReversed }: Calls['blockBegin']['ask'],
    onProgress: (done: number) => void,
    onPart: (bytes: Uint8Array<ArrayBuffer>) => void,
  ) {
    this.#delta = new BlockDelta(genesis, session, tuning, isReversed);
    this.#source = new BlobSource(file, onProgress);
    this.#onPart = onPart;
  }

  begin(): Uint8Array<ArrayBuffer> {
    return this.#delta.begin(this.#source) as Uint8Array<ArrayBuffer>;
  }

  reply(message: Uint8Array): DeltaLength {
    const sink = new Frames(this.#onPart);
    this.#delta.reply(message, this.#source, sink);
    return { ...sink.end(), literal: this.#delta.literalLength() };
  }

  takeAnswer(message: Uint8Array): boolean {
    return this.#delta.takeAnswer(message);
  }

  free(): void {
    this.#delta.free();
  }
}
