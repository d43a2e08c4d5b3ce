// Reads a file from front to back.

/** How many bytes a piece has at most. */
const PIECE_LENGTH = 1024 * 1024;

type Read = ReadableStreamReadResult<Uint8Array>;

/**
 * Gives the pieces of a file, in order. Each is there until the next one is asked for: all are read into the same memory, while the browser
 * reads ahead, which takes half the time of a new buffer for each. Where a browser cannot do that, it says in what pieces.
 */
export async function* piecesOf(file: Blob): AsyncGenerator<Uint8Array> {
  const { read, end } = readerOf(file.stream());
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await read().catch((error: unknown) => {
        throw unread(error instanceof Error ? error.message : String(error));
      });
      if (done) break;
      length += value.length;
      yield value;
    }
    if (length !== file.size) throw unread('the file has become another while it was read');
  } finally {
    // Whoever gives up in the middle does not want the rest. After an error there is none.
    await end().catch(() => undefined);
  }
}

/** Whatever a stream says, the file was not read to its end: it has changed, or is gone. */
function unread(message: string): Error {
  return Object.assign(new Error(message), { code: 'read', isRetryable: true });
}

function readerOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): {
  read: () => Promise<Read>;
  end: () => Promise<void>;
} {
  const into = readerIntoMemory(stream);
  if (!into) {
    const reader = stream.getReader();
    return { read: () => reader.read(), end: () => reader.cancel() };
  }
  let memory = new ArrayBuffer(PIECE_LENGTH);
  const read = async (): Promise<Read> => {
    // A browser that does not know `min` gives what it has at once, some 80 KiB, and each piece costs a turn of the worker.
    const { value } = await into.read(new Uint8Array(memory), { min: PIECE_LENGTH });
    if (!value?.length) return { done: true, value: undefined };
    memory = value.buffer;
    return { done: false, value };
  };
  return { read, end: () => into.cancel() };
}

/** Returns a reader that fills memory of ours; nothing where streams of files cannot. */
function readerIntoMemory(stream: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return stream.getReader({ mode: 'byob' });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}
