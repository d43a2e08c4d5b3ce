import { expect, test } from 'vitest';
import { bytesInto, bytesOf, readerIntoMemory } from './bytes.ts';

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** An answer whose bytes come in pieces; then it breaks off, where it does. */
function answer(pieces: string[], type: 'bytes' | undefined = 'bytes', isBroken = false): Response {
  const rest = pieces.map((piece) => new TextEncoder().encode(piece));
  const pull = (controller: ReadableStreamDefaultController | ReadableByteStreamController) => {
    const next = rest.shift();
    if (next) return controller.enqueue(next);
    if (isBroken) return controller.error(new TypeError('broken'));
    controller.close();
    if ('byobRequest' in controller) controller.byobRequest?.respond(0);
  };
  const source = type ? { type, pull } : { pull };
  // An answer of `fetch` has such a body; what is made here from a stream is read through.
  const body = new ReadableStream(source as UnderlyingDefaultSource);
  return { body, arrayBuffer: () => new Response(body).arrayBuffer() } as unknown as Response;
}

test('an answer is read into the memory that is given, where it is', async () => {
  const given = new ArrayBuffer(20);
  const bytes = await bytesInto(answer(['abc', 'def']), new Uint8Array(given, 4, 6), undefined);
  expect([text(bytes), bytes.byteOffset, bytes.buffer.byteLength]).toEqual(['abcdef', 4, 20]);
  expect(given.byteLength).toBe(0);
});

test('a short answer is told as it is, and of one that is too long nothing comes', async () => {
  const short = await bytesInto(answer(['abc']), new Uint8Array(6), undefined);
  expect([text(short), short.buffer.byteLength]).toEqual(['abc', 6]);
  expect(text(await bytesInto(answer([]), new Uint8Array(6), undefined))).toBe('');
  const long = answer(['abc', 'def', 'g']);
  expect((await bytesInto(long, new Uint8Array(6), undefined)).length).toBe(0);
});

test('where no memory can be brought, it comes in new one', async () => {
  const bytes = await bytesInto(answer(['abc', 'def'], undefined), new Uint8Array(6), undefined);
  expect(text(bytes)).toBe('abcdef');
  expect(readerIntoMemory(null)).toBeNull();
});

test('an answer that breaks off says that there is no connection, unless somebody has stopped it', async () => {
  const broken = () => answer(['abc'], 'bytes', true);
  const said = 'the server was not reached';
  await expect(bytesInto(broken(), new Uint8Array(6), undefined)).rejects.toThrow(said);
  await expect(bytesOf(broken(), undefined)).rejects.toThrow(said);
  const stopped = bytesInto(broken(), new Uint8Array(6), AbortSignal.abort());
  await expect(stopped).rejects.toThrow('broken');
});
