// How messages follow each other in the body of a request: `docs/design/delta.md`, "Over HTTP".

import type { DeltaLength } from './protocol.ts';

/** How many bytes of messages go to the page at a time. */
const PART_LENGTH = 4 * 1024 * 1024;

/** Puts a message behind its length in four bytes, little-endian. */
export function frameOf(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(4 + message.length);
  new DataView(frame.buffer).setUint32(0, message.length, true);
  frame.set(message, 4);
  return frame;
}

/** Collects messages to larger parts. */
export class Frames {
  readonly #onPart: (bytes: Uint8Array<ArrayBuffer>) => void;
  #frames: Uint8Array[] = [];
  #pending = 0;
  #length = 0;
  #literal = 0;

  constructor(onPart: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#onPart = onPart;
  }

  take(message: Uint8Array, literal: number): void {
    const frame = frameOf(message);
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
