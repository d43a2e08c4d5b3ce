// Numbers and bytes of messages: `docs/design/commit-log.md`, "Encoding".

import { BaselineError } from './error.ts';

/** Writes into a buffer that grows. */
export class Writer {
  #bytes = new Uint8Array(1024);
  #length = 0;

  raw(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
  }

  /** Writes an integer from 0 to 2^53 - 1. */
  unsigned(value: number): void {
    const bytes: number[] = [];
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
    this.raw(Uint8Array.of(...bytes, rest));
  }

  /** Writes an integer from -2^52 to 2^52 - 1. */
  signed(value: number): void {
    this.unsigned(value < 0 ? -2 * value - 1 : 2 * value);
  }

  take(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }
}

/** Reads what somebody else wrote; throws [BaselineError] where it ends early or a number is too large. */
export class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get rest(): number {
    return this.#bytes.length - this.#at;
  }

  raw(length: number): Uint8Array {
    if (length > this.rest) throw new BaselineError('message', 'the message ends early');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  unsigned(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 53; scale *= 128) {
      const byte = this.raw(1)[0] ?? 0;
      value += (byte & 127) * scale;
      if (!Number.isSafeInteger(value)) break;
      if (byte < 128) {
        if (byte === 0 && scale > 1) break;
        return value;
      }
    }
    throw new BaselineError('message', 'a number is not one of this format');
  }
}
