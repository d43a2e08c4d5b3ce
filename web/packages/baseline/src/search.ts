// Finds the blocks of the old version in the new one, at any byte: 16 bits of the weak sum, the weak sum, the fingerprint.

import { adler, roll } from './adler.ts';
import { keyedHash } from './blake3.ts';
import { STRONG_LENGTH, type BlockSums } from './sums.ts';

/** How many bytes may be fingerprinted in vain for each byte of the file, and in any case; then the rest counts as not found. */
const FALSE_ALARMS_MAX = 4;
const FALSE_ALARMS_FREE = 16 * 1024 * 1024;

/** Where a block of the old version stands in the new one, in bytes. */
export interface Match {
  position: number;
  block: number;
  length: number;
}

/** Returns the first level: 16 bits in which every bit of the weak sum has a part. */
function tag(weak: number): number {
  return Math.imul(weak, 0x9e3779b1) >>> 16;
}

/** A search through one file, from front to back. */
export class Search {
  readonly #sums: BlockSums;
  readonly #key: Uint8Array;
  readonly #file: Uint8Array;
  /** The first block of each tag, and the next one of the same tag behind each block; -1 where there is none. */
  readonly #heads = new Int32Array(65536).fill(-1);
  readonly #next: Int32Array;
  /** How many blocks have the full size. */
  readonly #full: number;
  #position = 0;
  #expected = 0;
  #falseAlarms = 0;
  #isAtEnd = false;

  constructor(sums: BlockSums, key: Uint8Array, file: Uint8Array) {
    this.#sums = sums;
    this.#key = key;
    this.#file = file;
    this.#full = Math.floor(sums.size / sums.blockSize);
    this.#next = new Int32Array(this.#full).fill(-1);
    // From the last one on, so that each list ascends.
    for (let block = this.#full - 1; block >= 0; block--) {
      const slot = tag(sums.weak[block] as number);
      this.#next[block] = this.#heads[slot] as number;
      this.#heads[slot] = block;
    }
  }

  /** Returns the next match, behind the one before. */
  next(): Match | null {
    if (this.#isAtEnd) return null;
    const found = this.#full > 0 ? this.#scan() : null;
    if (found) return found;
    this.#isAtEnd = true;
    return this.#shortBlockAtEnd();
  }

  #scan(): Match | null {
    const { blockSize: length } = this.#sums;
    const file = this.#file;
    const last = file.length - length;
    const allowed = FALSE_ALARMS_FREE + FALSE_ALARMS_MAX * file.length;
    let at = this.#position;
    if (at > last) return null;
    let weak = adler(file, at, at + length);
    for (;;) {
      const first = this.#heads[tag(weak)] as number;
      if (first >= 0) {
        const block = this.#confirm(first, weak, at);
        if (block >= 0) {
          this.#position = at + length;
          this.#expected = block + 1;
          return { position: at, block, length };
        }
        if (this.#falseAlarms > allowed) return null;
      }
      if (at === last) return null;
      weak = roll(weak, length, file[at] as number, file[at + length] as number);
      at++;
    }
  }

  /** Asks the second and the third level: of equal blocks that which continues the match before, or the first. */
  #confirm(first: number, weak: number, at: number): number {
    const { blockSize, weak: weaks } = this.#sums;
    let strong: Uint8Array | undefined;
    let found = -1;
    for (let block = first; block >= 0; block = this.#next[block] as number) {
      if (weaks[block] !== weak) continue;
      strong ??= keyedHash(this.#key, this.#file.subarray(at, at + blockSize));
      if (!this.#isEqual(block, strong)) continue;
      if (block === this.#expected) return block;
      if (found < 0) found = block;
    }
    if (strong && found < 0) this.#falseAlarms += blockSize;
    return found;
  }

  #isEqual(block: number, strong: Uint8Array): boolean {
    const start = block * STRONG_LENGTH;
    for (let at = 0; at < STRONG_LENGTH; at++) {
      if (this.#sums.strong[start + at] !== strong[at]) return false;
    }
    return true;
  }

  /** Returns the last, short block where the file ends with it, as rsync does. */
  #shortBlockAtEnd(): Match | null {
    const { size, blockSize, weak } = this.#sums;
    const length = size % blockSize;
    const [block, position] = [this.#full, this.#file.length - length];
    if (length === 0 || position < this.#position) return null;
    const isEqual =
      adler(this.#file, position, this.#file.length) === weak[block] &&
      this.#isEqual(block, keyedHash(this.#key, this.#file.subarray(position)));
    return isEqual ? { position, block, length } : null;
  }
}
