import { expect, test, vi } from 'vitest';
import type { SealedStep } from './protocol.ts';
import { readSealed, type ReadingPorts } from './sealed-reading.ts';
import { SPARE_LENGTH, SpareMemory } from './spare-memory.ts';

type Bytes = Uint8Array<ArrayBuffer>;
type Ask = Parameters<ReadingPorts['step']>[0];

const PART = { pack: 'p', start: 0, end: 1024 * 1024, inlineSeq: null };

/** A workspace with a file in its worker, `atOnce` bytes of which come with each part. */
function workspaceWith(file: Bytes, atOnce: number) {
  let at = 0;
  const fetched: Bytes[] = [];
  const step = ({ given, into }: Ask): Promise<SealedStep> => {
    const parts = given.map(({ bytes }) => bytes);
    // Nothing is to be had before the first part is there.
    const end = parts.length > 0 ? Math.min(at + atOnce, file.length) : at;
    const room = into ?? new Uint8Array(end - at);
    const some = file.subarray(at, Math.min(end, at + room.length));
    room.set(some);
    at += some.length;
    const answer = { bytes: room.subarray(0, some.length), spent: parts };
    const transfer = [room.buffer, ...parts.map(({ buffer }) => buffer)];
    const isOver = at === file.length && parts.length > 0;
    return Promise.resolve({
      ...structuredClone(answer, { transfer }),
      isOver,
      wanted: isOver ? [] : [PART],
    });
  };
  const fetch: ReadingPorts['fetch'] = (wanted, memory) => {
    const parts = wanted.map(({ start, end }) => memory.take(end - start) ?? new Uint8Array(1));
    fetched.push(...parts.map((bytes) => bytes.slice(0, 1)));
    for (const bytes of parts) bytes[0] = 77;
    return Promise.resolve(parts.map((bytes) => ({ bytes, isEntry: false })));
  };
  const ports = {
    begin: vi.fn(() => Promise.resolve(5)),
    step: vi.fn(step),
    fetch,
    end: vi.fn(() => Promise.resolve<string | null>(null)),
    onBytes: vi.fn(),
  };
  return { ports, fetched };
}

const file = Uint8Array.from({ length: 1_000 }, (_, place) => place % 251);

test('who brings memory gets the file in it, and the memory back at the end', async () => {
  for (const [length, atOnce] of [
    [64, 100],
    [100, 100],
    [300, 100],
    [5_000, 1_000],
  ] as const) {
    const { ports } = workspaceWith(file, atOnce);
    const reader = readSealed(ports, undefined).getReader({ mode: 'byob' });
    const read: number[] = [];
    let memory = new ArrayBuffer(length);
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(memory));
      memory = value?.buffer ?? memory;
      expect(memory.byteLength).toBe(length);
      if (done) break;
      read.push(...value);
    }
    expect(Uint8Array.from(read)).toEqual(file);
    expect(ports.end.mock.calls).toEqual([[5]]);
    expect(ports.onBytes.mock.calls.length).toBe(Math.ceil(1_000 / Math.min(length, atOnce)));
  }
});

test('memory in the middle of something stays there, and an empty file gives it back, too', async () => {
  const { ports } = workspaceWith(new Uint8Array(), 100);
  const reader = readSealed(ports, undefined).getReader({ mode: 'byob' });
  const { done, value } = await reader.read(new Uint8Array(new ArrayBuffer(100), 10, 50));
  expect([done, value?.byteOffset, value?.length]).toEqual([true, 10, 0]);
  expect(value?.buffer.byteLength).toBe(100);
});

test('who brings none gets the file, too', async () => {
  const { ports } = workspaceWith(file, 300);
  const read: number[] = [];
  for (const reader = readSealed(ports, undefined).getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    read.push(...value);
  }
  expect(Uint8Array.from(read)).toEqual(file);
  expect(ports.step.mock.calls.every(([{ into }]) => into === null)).toBe(true);
});

test('parts of packs are fetched into memory that came back from the worker', async () => {
  const { ports, fetched } = workspaceWith(file, 100);
  const reader = readSealed(ports, undefined).getReader({ mode: 'byob' });
  while (!(await reader.read(new Uint8Array(100))).done);
  // What the part before had written there is there still.
  expect(fetched.map(([byte]) => byte)).toEqual([0, ...Array<number>(9).fill(77)]);
});

test('what fails comes out of the stream, and ends the reading', async () => {
  const { ports } = workspaceWith(file, 100);
  const reader = readSealed(ports, undefined).getReader({ mode: 'byob' });
  await reader.read(new Uint8Array(100));
  ports.step.mockRejectedValue(new Error('tampered'));
  await expect(reader.read(new Uint8Array(100))).rejects.toThrow('tampered');
  expect(ports.end.mock.calls).toEqual([[5]]);
});

test('of many files the one that fails is named', async () => {
  const { ports } = workspaceWith(file, 100);
  const reader = readSealed(ports, undefined).getReader();
  await reader.read();
  const cause = new Error('tampered');
  ports.step.mockRejectedValue(cause);
  ports.end.mockResolvedValue('Letters/plan.txt');
  await expect(reader.read()).rejects.toMatchObject({
    ...{ name: 'FileUnreadable', path: 'Letters/plan.txt', cause },
  });
  expect(ports.end.mock.calls).toEqual([[5]]);
});

test('who stops reading ends the reading, and who has stopped before asks for nothing', async () => {
  const { ports } = workspaceWith(file, 100);
  const stream = readSealed(ports, undefined);
  await Promise.resolve();
  expect(ports.begin).not.toHaveBeenCalled();
  const reader = stream.getReader({ mode: 'byob' });
  await reader.read(new Uint8Array(100));
  await reader.cancel();
  expect(ports.end.mock.calls).toEqual([[5]]);
  const stopped = readSealed(ports, AbortSignal.abort(new Error('given up'))).getReader();
  await expect(stopped.read()).rejects.toThrow('given up');
});

test('memory is kept for what is worth it, and for no more than is in use at once', () => {
  const memory = new SpareMemory();
  expect([memory.take(1_000), memory.take(SPARE_LENGTH + 1)]).toEqual([undefined, undefined]);
  const taken = memory.take(100_000);
  expect(taken?.length).toBe(100_000);
  if (taken) memory.giveBack(taken);
  expect(memory.take(200_000)?.buffer).toBe(taken?.buffer);
  memory.giveBack(new Uint8Array(100_000));
  const other = memory.take(100_000);
  expect(other?.buffer.byteLength).toBe(SPARE_LENGTH);
  const many = Array.from({ length: 20 }, () => new Uint8Array(new ArrayBuffer(SPARE_LENGTH)));
  for (const bytes of many) memory.giveBack(bytes);
  const known = new Set(many.map(({ buffer }) => buffer));
  const again = many.map(() => memory.take(100_000)?.buffer);
  expect(again.filter((buffer) => buffer && known.has(buffer)).length).toBe(8);
});
