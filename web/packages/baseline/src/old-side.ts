// The side that has the old version, written as plainly as can be: for tests.

import { adler } from './adler.ts';
import { deriveKey, hash, keyedHash } from './blake3.ts';
import { Reader, Writer } from './bytes.ts';

export interface Side {
  genesis: Uint8Array;
  session: Uint8Array;
}

/** Tells the sums of a file, in blocks of any size. */
export function sumsOf(old: Uint8Array, blockSize: number, { genesis, session }: Side): Uint8Array {
  const workspace = hash(genesis).subarray(0, 16);
  const key = deriveKey('syncline delta v1: block sums', Uint8Array.of(...workspace, ...session));
  const writer = new Writer();
  writer.raw(Uint8Array.of(0x64, 1, 1, ...session));
  writer.unsigned(old.length);
  writer.unsigned(Math.log2(blockSize));
  writer.unsigned(16);
  for (let start = 0; start < old.length; start += blockSize) {
    const block = old.subarray(start, start + blockSize);
    const weak = new Uint8Array(4);
    new DataView(weak.buffer).setUint32(0, adler(block, 0, block.length), true);
    writer.raw(weak);
    writer.raw(keyedHash(key, block).subarray(0, 16));
  }
  return writer.take();
}

export type Step = { block: number; count: number } | { bytes: Uint8Array };

/** What a recipe says. */
export interface Said {
  steps: Step[];
  size: number;
  hash: Uint8Array;
}

/** Reads the body of a recipe; throws where it is not one of this session, or has no end. */
export function read(body: Uint8Array, session: Uint8Array): Said {
  const steps: Step[] = [];
  let whole: Omit<Said, 'steps'> | undefined;
  const frames = new Reader(body);
  while (frames.rest > 0) {
    if (whole) throw new Error('something follows the last part');
    const four = frames.raw(4);
    const length = new DataView(four.buffer, four.byteOffset).getUint32(0, true);
    const part = new Reader(frames.raw(length));
    const head = Uint8Array.of(0x64, 1, 2, ...session);
    if (String(part.raw(head.length)) !== String(head)) throw new Error('no recipe');
    if (part.unsigned() === 1) whole = { size: part.unsigned(), hash: part.raw(32) };
    let expected = 0;
    for (let left = part.unsigned(); left > 0; left--) {
      const length = part.unsigned();
      const count = Math.floor(length / 2);
      if (length % 2 === 0) {
        steps.push({ bytes: part.raw(count) });
        continue;
      }
      const zigzag = part.unsigned();
      const block = expected + (zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2);
      expected = block + count;
      steps.push({ block, count });
    }
    if (part.rest > 0) throw new Error('something is behind the steps');
  }
  if (!whole) throw new Error('there is no last part');
  return { steps, ...whole };
}

/** Puts the new version together. */
export function apply({ steps }: Said, old: Uint8Array, blockSize: number): Uint8Array {
  const parts = steps.map((step) =>
    'bytes' in step
      ? step.bytes
      : old.subarray(step.block * blockSize, (step.block + step.count) * blockSize),
  );
  return new Uint8Array(Buffer.concat(parts));
}
