import { expect, test } from 'vitest';
import { forgetStored, STORED_MAX, storedIn } from './stored.ts';

const MARK = '0-1';

function place(): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
    key: (at: number) => [...kept.keys()][at] ?? null,
    get length() {
      return kept.size;
    },
  } as unknown as Storage;
}

const pack = (number: number) => ({
  id: number.toString(16).padStart(64, '0'),
  length: 1 + number,
  of: '7 1700000000000',
});

test('packs of a workspace are kept for it alone, until none is left', () => {
  const storage = place();
  const [ours, other] = [storedIn('ours', storage), storedIn('other', storage)];
  expect(ours.get()).toBeNull();
  ours.set({ mark: MARK, packs: [pack(1), pack(2)] });
  expect(storedIn('ours', storage).get()).toEqual({ mark: MARK, packs: [pack(1), pack(2)] });
  expect(other.get()).toBeNull();
  ours.set({ mark: MARK, packs: [] });
  expect(ours.get()).toBeNull();
});

test('what is kept of all workspaces is forgotten together, and nothing else with it', () => {
  const storage = place();
  storage.setItem('syncline.session', 'a token');
  for (const workspace of ['ours', 'other', 'third'])
    storedIn(workspace, storage).set({ mark: MARK, packs: [pack(1)] });
  forgetStored(storage);
  expect(['ours', 'other', 'third'].map((one) => storedIn(one, storage).get())).toEqual([
    null,
    null,
    null,
  ]);
  expect(storage.getItem('syncline.session')).toBe('a token');
});

test('of very many the last ones are kept', () => {
  const stored = storedIn('ours', place());
  stored.set({ mark: MARK, packs: Array.from({ length: STORED_MAX + 1 }, (_, at) => pack(at)) });
  expect(stored.get()?.packs.length).toBe(STORED_MAX);
  expect(stored.get()?.packs[0]).toEqual(pack(1));
});

test.each([
  'x',
  'null',
  '[]',
  '{"mark":1,"packs":[]}',
  '{"mark":"0-1","packs":{}}',
  '{"mark":"0-1","packs":[null]}',
])('what is none is nothing: %s', (text) => {
  const storage = place();
  storage.setItem('syncline.sealed-packs.ours', text);
  expect(storedIn('ours', storage).get()).toBeNull();
});

test('of what was kept only what can be packs counts, and a full browser keeps nothing', () => {
  const storage = place();
  const packs = [
    { ...pack(1), id: 'x' },
    { ...pack(1), of: 'a/b' },
    { ...pack(1), length: -1 },
    { ...pack(2), length: '3' },
  ];
  const text = JSON.stringify({ mark: MARK, packs: [...packs, pack(3)] });
  storage.setItem('syncline.sealed-packs.ours', text);
  expect(storedIn('ours', storage).get()).toEqual({ mark: MARK, packs: [pack(3)] });
  const full = {
    ...place(),
    setItem: () => {
      throw new DOMException('full');
    },
  };
  expect(() =>
    storedIn('ours', full as unknown as Storage).set({ mark: MARK, packs: [pack(1)] }),
  ).not.toThrow();
});
