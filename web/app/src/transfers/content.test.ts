import { expect, test } from 'vitest';
import { decodeTable, digestOf, hasContent, secretOf } from './content.ts';

const id = (byte: number) => new Array<number>(32).fill(byte);
const signal = new AbortController().signal;

/** Cuts after every four bytes, and names a chunk by its first byte and the secret. */
const core = {
  chunk: async (file: Blob, { secret }: { secret: Uint8Array }) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const ids: number[] = [];
    for (let at = 0; at < bytes.length; at += 64) {
      ids.push(...id((bytes[at] ?? 0) + (secret[0] ?? 0) + bytes.length - at));
    }
    return { lengths: new Uint32Array(), ids: Uint8Array.from(ids) };
  },
};

test('a chunk list is read, and one that is cut off is none', () => {
  const bytes = [0x56, 1, 0x80, 0x80, 4, 2, ...id(7), 0x85, 1, ...id(9), 3, 0];
  const table = decodeTable(Uint8Array.from(bytes));
  expect(table).toEqual({
    average: 65_536,
    lengths: [133, 3],
    ids: Uint8Array.from([...id(7), ...id(9)]),
  });
  for (const length of [0, 1, 2, 5, 20, 60]) {
    expect(() => decodeTable(Uint8Array.from(bytes.slice(0, length)))).toThrow(RangeError);
  }
  expect(() => decodeTable(Uint8Array.from([0x47, 1]))).toThrow('no chunk list');
  const endless = [0x56, 1, 1, ...new Array<number>(20).fill(255)];
  expect(() => decodeTable(Uint8Array.from(endless))).toThrow(RangeError);
});

test('the secret is the end of the genesis', () => {
  expect(secretOf(Uint8Array.from([0x47, 1, 0, 0, ...id(5)]))).toEqual(Uint8Array.from(id(5)));
  expect(() => secretOf(Uint8Array.from([0x48, 1, ...id(5)]))).toThrow('no genesis');
});

test('a file has the content of a version if all its chunks have their names', async () => {
  const secret = Uint8Array.from(id(1));
  const { ids } = await core.chunk(new Blob(['a'.repeat(100)]), { secret });
  const table = { average: 1, lengths: [64, 36], ids };
  const has = (text: string) => hasContent(core, new Blob([text]), table, secret, signal);
  expect(await has('a'.repeat(100))).toBe(true);
  expect(await has(`${'a'.repeat(64)}${'b'.repeat(36)}`)).toBe(false);
  expect(await has('a'.repeat(99))).toBe(false);
  const empty = { average: 1, lengths: [], ids: new Uint8Array() };
  expect(await hasContent(core, new Blob([]), empty, secret, signal)).toBe(true);
});

test('a digest is one name, also of a file of many chunks, and never the empty text', async () => {
  const digest = (text: string) => digestOf(core, new Blob([text]), signal);
  expect(await digest('')).toBe('empty');
  expect(await digest('a')).toMatch(/^[0-9a-f]{64}$/);
  expect(await digest('a'.repeat(1_000))).toMatch(/^[0-9a-f]{64}$/);
  expect(await digest('a')).not.toBe(await digest('b'));
});
