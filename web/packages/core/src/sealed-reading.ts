// A file of a sealed workspace on its way to whoever reads it. Page and worker hand the same memory to and fro: parts of packs come back when
// the worker has opened them, and what was in them goes into the memory of the reader, if he brings some.

import { FileUnreadable } from './error.ts';
import type { SealedPart, SealedStep } from './protocol.ts';
import { SpareMemory } from './spare-memory.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** A part that was fetched. */
export interface Given {
  bytes: Bytes;
  isEntry: boolean;
}

/** What a reading wants of its workspace. */
export interface ReadingPorts {
  /** By which number it has begun, or what begins it and returns that. */
  begin: number | (() => Promise<number>);
  /** Moves to the worker what was fetched and the memory to read into, and both come back. */
  step(ask: { reading: number; given: Given[]; into: Bytes | null }): Promise<SealedStep>;
  fetch(wanted: readonly SealedPart[], memory: SpareMemory): Promise<Given[]>;
  /** Ends; returns the path of the file that was read, where it is one of many. */
  end(reading: number): Promise<string | null>;
  /** Hears that somebody reads. */
  onBytes: () => void;
}

/** Parts of packs are fetched as somebody takes what was in them. An error comes out of the stream, and what came before it is not the file. */
export function readSealed(ports: ReadingPorts, signal: AbortSignal | undefined) {
  const memory = new SpareMemory();
  const { begin } = ports;
  let reading = typeof begin === 'number' ? begin : undefined;
  let fetching: Promise<Given[]> = Promise.resolve([]);
  const end = async () => (reading === undefined ? null : ports.end(reading));
  const pull = async (controller: ReadableByteStreamController) => {
    reading ??= typeof begin === 'number' ? begin : await begin();
    const request = controller.byobRequest as ReadableStreamBYOBRequest | null | undefined;
    let into = request ? viewOf(request) : null;
    for (;;) {
      signal?.throwIfAborted();
      const place = into && { offset: into.byteOffset, length: into.length };
      const step = await ports.step({ reading, given: await fetching, into });
      const { bytes } = step;
      // Whoever gets it takes it away from here.
      const { length } = bytes;
      if (place) into = new Uint8Array(bytes.buffer, place.offset, place.length);
      for (const spent of step.spent) memory.giveBack(spent);
      fetching = ports.fetch(step.wanted, memory);
      // Who reads slowly hears of what failed when it is due.
      fetching.catch(() => undefined);
      if (step.isOver) await end();
      if (length > 0) {
        ports.onBytes();
        if (request) request.respondWithNewView(bytes);
        else controller.enqueue(bytes);
      }
      if (step.isOver) return close(controller, length > 0 ? null : bytes);
      if (length > 0) return;
    }
  };
  const source = {
    pull: async (controller: ReadableByteStreamController) => {
      try {
        await pull(controller);
      } catch (error) {
        const path = await end().catch(() => null);
        throw path === null ? error : new FileUnreadable(path, error);
      }
    },
    cancel: async () => void (await end()),
  };
  return streamOf(source);
}

/** A browser that has no streams of bytes gets one into which nobody brings memory. */
function streamOf(source: Omit<UnderlyingByteSource, 'type'>): ReadableStream<Bytes> {
  if ('ReadableByteStreamController' in globalThis) {
    return new ReadableStream({ ...source, type: 'bytes' }) as ReadableStream<Bytes>;
  }
  return new ReadableStream(source as UnderlyingDefaultSource<Bytes>);
}

/** Who still waits hears that there is no more, and gets his memory back: `moved`, where it was with the worker. */
function close(controller: ReadableByteStreamController, moved: Bytes | null): void {
  controller.close();
  const request = controller.byobRequest as ReadableStreamBYOBRequest | null | undefined;
  if (moved) request?.respondWithNewView(moved);
  else request?.respond(0);
}

function viewOf({ view }: ReadableStreamBYOBRequest): Bytes | null {
  if (!view) return null;
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
}
