// Sums of the blocks of the old version, as the server tells them: `docs/design/delta.md`, kind 1.

import { Reader } from './bytes.ts';
import { BaselineError } from './error.ts';

/** How many bytes of a strong fingerprint are sent. */
export const STRONG_LENGTH = 16;

const HEAD = [0x64, 1, 1];
const BLOCK_SIZE_LOG_MIN = 9;
const BLOCK_SIZE_LOG_MAX = 23;

/** The blocks of the old version. */
export interface BlockSums {
  /** The length of the old version in bytes. */
  size: number;
  /** The length of a block in bytes; the last one may be shorter. */
  blockSize: number;
  /** The Adler-32 of each block. */
  weak: Uint32Array;
  /** The first 16 bytes of the keyed BLAKE3 of each block, one after the other. */
  strong: Uint8Array;
}

/** Reads the sums from a message. */
export function readSums(message: Uint8Array, session: Uint8Array): BlockSums {
  const reader = new Reader(message);
  const head = reader.raw(HEAD.length);
  if (HEAD.some((byte, index) => head[index] !== byte)) {
    throw new BaselineError('message', 'the server did not send sums');
  }
  const named = reader.raw(session.length);
  if (session.some((byte, index) => named[index] !== byte)) {
    throw new BaselineError('wrong_session', 'the sums are those of another session');
  }
  const [size, log, width] = [reader.unsigned(), reader.unsigned(), reader.unsigned()];
  const isFine = log >= BLOCK_SIZE_LOG_MIN && log <= BLOCK_SIZE_LOG_MAX && width === STRONG_LENGTH;
  if (!isFine) throw new BaselineError('message', 'blocks are not those of this method');
  const blockSize = 2 ** log;
  const count = Math.ceil(size / blockSize);
  if (reader.rest !== count * (4 + STRONG_LENGTH)) {
    throw new BaselineError('message', 'there is not one sum for each block');
  }
  const weak = new Uint32Array(count);
  const strong = new Uint8Array(count * STRONG_LENGTH);
  for (let block = 0; block < count; block++) {
    const four = reader.raw(4);
    weak[block] = new DataView(four.buffer, four.byteOffset).getUint32(0, true);
    strong.set(reader.raw(STRONG_LENGTH), block * STRONG_LENGTH);
  }
  return { size, blockSize, weak, strong };
}
