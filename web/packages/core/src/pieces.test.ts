import { describe, expect, test } from 'vitest';
import { piecesOf } from './pieces.ts';

const MIB = 1024 * 1024;

function bytesOf(length: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, index) => (index * 7 + (index >> 8)) & 255);
}

async function joined(file: Blob): Promise<[Uint8Array, number[]]> {
  const all: number[] = [];
  const lengths: number[] = [];
  for await (const piece of piecesOf(file)) {
    lengths.push(piece.length);
    for (const byte of piece) all.push(byte);
  }
  return [Uint8Array.from(all), lengths];
}

/** A file as browsers have them, whose stream fills memory of others; those of Node.js do not. */
function intoMemory(bytes: Uint8Array<ArrayBuffer>): Blob {
  let start = 0;
  const pull = (controller: ReadableByteStreamController) => {
    const view = controller.byobRequest?.view;
    if (!view) throw new Error('memory was to be filled');
    const some = bytes.subarray(start, start + Math.min(view.byteLength, 700_000));
    new Uint8Array(view.buffer, view.byteOffset).set(some);
    start += some.length;
    if (some.length === 0) controller.close();
    controller.byobRequest?.respond(some.length);
  };
  const stream = () => new ReadableStream({ type: 'bytes', pull });
  return { size: bytes.length, stream } as unknown as Blob;
}

describe('pieces of a file', () => {
  test.each([0, 1, MIB - 1, MIB, 2 * MIB + 5])(
    '%d bytes come once and in order',
    async (length) => {
      const bytes = bytesOf(length);
      const [found, lengths] = await joined(intoMemory(bytes));
      expect(Buffer.compare(found, bytes)).toBe(0);
      // They are whole, also where the browser gives fewer bytes at once.
      expect(lengths.slice(0, -1).every((length) => length === MIB)).toBe(true);
      const [otherwise] = await joined(new Blob([bytes]));
      expect(Buffer.compare(otherwise, bytes)).toBe(0);
    },
  );

  test('a file that ends before its size has changed', async () => {
    const short = Object.assign(intoMemory(bytesOf(10)), { size: 11 });
    const said = { code: 'read', isRetryable: true };
    await expect(joined(short)).rejects.toMatchObject(said);
  });

  test('a file that cannot be read says so', async () => {
    const broken = {
      stream: () =>
        new ReadableStream({
          type: 'bytes',
          pull: (controller) => controller.error(new Error('gone')),
        }),
    } as unknown as Blob;
    await expect(joined(broken)).rejects.toMatchObject({ message: 'gone', code: 'read' });
  });

  test('who gives up in the middle ends the reading', async () => {
    let isEnded = false;
    const endless = {
      stream: () =>
        new ReadableStream({
          type: 'bytes',
          pull: (controller) => controller.enqueue(new Uint8Array(10)),
          cancel: () => void (isEnded = true),
        }),
    } as unknown as Blob;
    for await (const piece of piecesOf(endless)) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
    expect(isEnded).toBe(true);
  });
});
