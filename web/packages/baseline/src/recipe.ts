// How the new version follows from the old one: `docs/design/delta.md`, kind 2.

import { Writer } from './bytes.ts';

/** A part of a recipe is sent when it has so many literal bytes, or so many steps. */
const PART_LENGTH = 256 * 1024;
const STEPS_MAX = 128 * 1024;

const HEAD = Uint8Array.of(0x64, 1, 2);

type Step = { block: number; count: number } | { bytes: Uint8Array };

/** Collects the steps of a recipe to messages. */
export class Recipe {
  readonly #session: Uint8Array;
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  #steps: Step[] = [];
  #length = 0;
  /** How many bytes of the file are sent. */
  literalLength = 0;

  constructor(session: Uint8Array) {
    this.#session = session;
  }

  literal(bytes: Uint8Array): void {
    this.literalLength += bytes.length;
    for (let start = 0; start < bytes.length;) {
      const some = bytes.subarray(start, start + PART_LENGTH - this.#length);
      this.#steps.push({ bytes: some });
      this.#length += some.length;
      start += some.length;
      this.#flushIfFull();
    }
  }

  copy(block: number): void {
    const last = this.#steps.at(-1);
    if (last && 'count' in last && last.block + last.count === block) last.count++;
    else this.#steps.push({ block, count: 1 });
    this.#flushIfFull();
  }

  /** Ends with what the file is as a whole; returns all messages. */
  finish(size: number, hash: Uint8Array): Uint8Array<ArrayBuffer>[] {
    this.#flush({ size, hash });
    return this.#parts;
  }

  #flushIfFull(): void {
    if (this.#length >= PART_LENGTH || this.#steps.length >= STEPS_MAX) this.#flush(null);
  }

  #flush(whole: { size: number; hash: Uint8Array } | null): void {
    const writer = new Writer();
    writer.raw(HEAD);
    writer.raw(this.#session);
    writer.unsigned(whole ? 1 : 0);
    if (whole) {
      writer.unsigned(whole.size);
      writer.raw(whole.hash);
    }
    writer.unsigned(this.#steps.length);
    let expected = 0;
    for (const step of this.#steps) {
      if ('bytes' in step) {
        writer.unsigned(2 * step.bytes.length);
        writer.raw(step.bytes);
      } else {
        writer.unsigned(2 * step.count + 1);
        writer.signed(step.block - expected);
        expected = step.block + step.count;
      }
    }
    this.#parts.push(writer.take());
    this.#steps = [];
    this.#length = 0;
  }
}
