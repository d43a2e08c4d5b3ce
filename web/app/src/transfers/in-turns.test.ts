import { expect, test, vi } from 'vitest';
import { download } from './download.ts';
import { inTurns } from './in-turns.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** A stream of so many bytes, 1 in the first piece, 2 in the second and so on; `type` says whether memory can be brought. */
function streamOf(pieces: number, length: number, type: 'bytes' | undefined, isBroken = false) {
  const [seen, cancel] = [new Set<number>(), vi.fn()];
  let number = 0;
  const pull = (controller: ReadableByteStreamController) => {
    if (number === pieces && isBroken) return controller.error(new TypeError('broken'));
    if (number === pieces) {
      controller.close();
      return controller.byobRequest?.respond(0);
    }
    number += 1;
    const view = controller.byobRequest?.view;
    if (!view) return controller.enqueue(new Uint8Array(length).fill(number));
    const memory = new Uint8Array(view.buffer as ArrayBuffer);
    // What is there shows which memory that is.
    seen.add((memory[memory.length - 1] ||= number));
    memory.subarray(0, length).fill(number);
    controller.byobRequest?.respond(length);
  };
  const source = { ...(type ? { type } : {}), pull, cancel };
  const body = new ReadableStream(source as unknown as UnderlyingDefaultSource<Bytes>);
  return { body, seen, cancel };
}

test('a stream comes piece by piece, and one of bytes in two pieces of memory', async () => {
  for (const type of ['bytes', undefined] as const) {
    const { body, seen } = streamOf(9, 50, type);
    const sums: number[] = [];
    for await (const piece of inTurns(body)) {
      await Promise.resolve();
      expect(piece.length).toBe(50);
      sums.push(piece.reduce((sum, byte) => sum + byte, 0) / 50);
    }
    expect(sums).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(seen.size).toBe(type ? 2 : 0);
  }
});

test('what came before a failure comes before it, and who goes away stops the stream', async () => {
  const broken = streamOf(3, 50, 'bytes', true);
  const numbers: (number | undefined)[] = [];
  const reading = (async () => {
    for await (const piece of inTurns(broken.body)) {
      // Longer than it takes the next one to fail.
      await new Promise((resolve) => setTimeout(resolve));
      numbers.push(piece[0]);
    }
  })();
  await expect(reading).rejects.toThrow('broken');
  expect(numbers).toEqual([1, 2, 3]);
  const left = streamOf(3, 50, 'bytes');
  for await (const piece of inTurns(left.body)) {
    expect(piece[0]).toBe(1);
    break;
  }
  expect(left.cancel).toHaveBeenCalledTimes(1);
});

test('what is written to a file is what came, also where the disk is slow and where it breaks off', async () => {
  for (const isBroken of [false, true]) {
    const written: number[] = [];
    const writable = {
      write: async (piece: Bytes) => {
        await new Promise((resolve) => setTimeout(resolve));
        written.push(piece[0] ?? 0, piece[piece.length - 1] ?? 0);
      },
      close: vi.fn(() => Promise.resolve()),
    };
    const target = { createWritable: () => Promise.resolve(writable) };
    const { body } = streamOf(4, 50, 'bytes', isBroken);
    const job = {
      name: 'x',
      read: () => Promise.resolve({ body, size: 200, etag: '"1"' }),
      target: target as unknown as FileSystemFileHandle,
      isResumable: true,
    };
    const onProgress = vi.fn();
    const done = download(job, { onProgress }, new AbortController().signal);
    if (isBroken) await expect(done).rejects.toThrow('the server was not reached');
    else await done;
    expect(written).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
    expect(onProgress.mock.calls).toEqual([[50], [100], [150], [200]]);
    expect(writable.close.mock.calls.length).toBe(isBroken ? 0 : 1);
    if (isBroken) expect(job).toMatchObject({ kept: { length: 200, etag: '"1"' } });
  }
});
