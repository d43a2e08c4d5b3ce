// All of an answer: in new memory, or in memory that is there already.

import { NoConnection } from './problem.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** Reads all of an answer. */
export async function bytesOf(response: Response, signal: AbortSignal | undefined): Promise<Bytes> {
  try {
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new NoConnection(error);
  }
}

/** Reads all of an answer into `memory`, which the caller has no longer: what comes back has it. Nothing comes of an answer that is longer. */
export async function bytesInto(
  response: Response,
  memory: Bytes,
  signal: AbortSignal | undefined,
): Promise<Bytes> {
  const reader = readerIntoMemory(response.body);
  if (!reader) return bytesOf(response, signal);
  const { byteOffset, length } = memory;
  let { buffer } = memory;
  let filled = 0;
  try {
    while (filled < length) {
      const room = new Uint8Array(buffer, byteOffset + filled, length - filled);
      const { done, value } = await reader.read(room);
      if (value) buffer = value.buffer;
      if (done) return new Uint8Array(buffer, byteOffset, filled);
      filled += value.length;
    }
    // That it has ended shows only to who asks for more.
    const { done } = await reader.read(new Uint8Array(1));
    if (done) return new Uint8Array(buffer, byteOffset, filled);
    await reader.cancel();
    return new Uint8Array();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new NoConnection(error);
  }
}

/** A reader that takes memory along; none where the browser, or the stream, knows nothing of the kind. */
export function readerIntoMemory(
  body: ReadableStream<Bytes> | null,
): ReadableStreamBYOBReader | null {
  try {
    return body?.getReader({ mode: 'byob' }) ?? null;
  } catch {
    return null;
  }
}
