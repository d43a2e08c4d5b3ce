import { ChunkDelta } from '../dist/core.js';
import type { Calls, DeltaLength } from './protocol.ts';
import { BlobSource } from './source.ts';

/** How many bytes of messages go to the page at a time. */
const PART_LENGTH = 4 * 1024 * 1024;

/** The side of a delta in the worker. */
export class DeltaWork {
  readonly #delta: ChunkDelta;
  readonly #source: BlobSource;
  readonly #isKept: boolean;
  readonly #onPart: (bytes: Uint8Array<ArrayBuffer>) => void;

  constructor(
    { file, genesis, session, base, isKept }: Calls['deltaBegin']['ask'],
    onProgress: (done: number) => void,
    onPart: (bytes: Uint8Array<ArrayBuffer>) => void,
  ) {
    this.#delta = new ChunkDelta(genesis, session, base);
    this.#source = new BlobSource(file, onProgress);
    this.#isKept = isKept;
    this.#onPart = onPart;
  }

  begin(): Calls['deltaBegin']['answer'] {
    if (this.#isKept) return null;
    return (this.#delta.survey(this.#source) as Uint8Array<ArrayBuffer> | undefined) ?? null;
  }

  send(sums: Uint8Array | null): DeltaLength {
    if (sums) this.#delta.takeSums(sums);
    const sink = new Frames(this.#onPart);
    this.#delta.send(this.#source, sink);
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

/** Puts each message behind its length in four bytes, little-endian (`docs/design/delta.md`, "Over HTTP"). */
class Frames {
  readonly #onPart: (bytes: Uint8Array<ArrayBuffer>) => void;
  #frames: Uint8Array[] = [];
  #pending = 0;
  #length = 0;
  #literal = 0;

  constructor(onPart: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#onPart = onPart;
  }

  take(message: Uint8Array, literal: number): void {
    const frame = new Uint8Array(4 + message.length);
    new DataView(frame.buffer).setUint32(0, message.length, true);
    frame.set(message, 4);
    this.#frames.push(frame);
    this.#pending += frame.length;
    this.#literal += literal;
    if (this.#pending >= PART_LENGTH) this.#flush();
  }

  end(): DeltaLength {
    if (this.#pending > 0) this.#flush();
    return { length: this.#length, literal: this.#literal };
  }

  #flush(): void {
    const part = new Uint8Array(this.#pending);
    let start = 0;
    for (const frame of this.#frames) {
      part.set(frame, start);
      start += frame.length;
    }
    this.#length += part.length;
    this.#frames = [];
    this.#pending = 0;
    this.#onPart(part);
  }
}
