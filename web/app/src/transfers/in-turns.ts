// A stream piece by piece: the next one is on its way while somebody works on this one.

import { readerIntoMemory } from '@syncline/api';

type Bytes = Uint8Array<ArrayBuffer>;

/** What is read of a workspace at once has 4 MiB, and some more where a chunk begins in them. */
const LENGTH = 5 * 1024 * 1024;

/**
 * Gives what comes, piece by piece. A stream of bytes is read into two pieces of memory by turns, however long it is: what was given is
 * overwritten when the next one was asked for.
 */
export async function* inTurns(body: ReadableStream<Bytes>): AsyncGenerator<Bytes> {
  const { reader, read, memory } = readerOf(body);
  let [coming, other] = [read(memory()), memory()];
  try {
    for (;;) {
      const { done, value } = await coming;
      if (done) return;
      coming = read(other);
      // Whoever is at work hears of what failed when it is due.
      coming.catch(() => undefined);
      yield value;
      other = value.buffer;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** How a stream is read; one that is none of bytes brings its own memory. */
function readerOf(body: ReadableStream<Bytes>) {
  const reader = readerIntoMemory(body);
  if (!reader) {
    const reader = body.getReader();
    return { reader, read: () => reader.read(), memory: () => new ArrayBuffer() };
  }
  const read = (memory: ArrayBuffer) => reader.read(new Uint8Array(memory));
  return { reader, read, memory: () => new ArrayBuffer(LENGTH) };
}
