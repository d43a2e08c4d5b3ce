import type { SealedKept } from '@syncline/core';
import { expect, test, vi } from 'vitest';
import { STORED_MAX, storedIn, type Place } from './stored.ts';

const time = vi.hoisted(() => ({ since: 0 }));
vi.mock('../transfers/sketches.ts', () => ({ signedInSince: () => time.since }));

const MARK = '0-1';

function place(found: Record<string, unknown> = {}): Place {
  const kept = new Map<string, unknown>(Object.entries(found));
  return {
    get: (workspace) => Promise.resolve(kept.get(workspace)),
    set: (workspace, now: SealedKept | null) => {
      kept.set(workspace, now);
      return Promise.resolve();
    },
  };
}

const pack = (number: number) => ({
  id: number.toString(16).padStart(64, '0'),
  length: 1 + number,
  of: '7 1700000000000',
});

/** What a page that comes next finds. */
async function next(where: Place, workspace = 'ours') {
  await new Promise((resolve) => setTimeout(resolve));
  const stored = storedIn(workspace, where);
  await new Promise((resolve) => setTimeout(resolve));
  return stored.get();
}

test('packs of a workspace are kept for it alone, until none is left', async () => {
  const where = place();
  const ours = storedIn('ours', where);
  expect(ours.get()).toBeNull();
  ours.set({ mark: MARK, packs: [pack(1), pack(2)] });
  expect(ours.get()).toEqual({ mark: MARK, packs: [pack(1), pack(2)] });
  expect(await next(where)).toEqual({ mark: MARK, packs: [pack(1), pack(2)] });
  expect(await next(where, 'other')).toBeNull();
  ours.set({ mark: MARK, packs: [] });
  expect(ours.get()).toBeNull();
  expect(await next(where)).toBeNull();
});

test('what is said before it was read counts', async () => {
  const where = place({ ours: { mark: MARK, packs: [pack(1)] } });
  const ours = storedIn('ours', where);
  ours.set({ mark: MARK, packs: [pack(2)] });
  expect(await next(where)).toEqual({ mark: MARK, packs: [pack(2)] });
  expect(ours.get()?.packs).toEqual([pack(2)]);
});

test('of very many the last ones are kept', () => {
  const stored = storedIn('ours', place());
  stored.set({ mark: MARK, packs: Array.from({ length: STORED_MAX + 1 }, (_, at) => pack(at)) });
  expect(stored.get()?.packs.length).toBe(STORED_MAX);
  expect(stored.get()?.packs[0]).toEqual(pack(1));
});

test.each([
  'x',
  null,
  [],
  { mark: 1, packs: [] },
  { mark: MARK, packs: {} },
  { mark: MARK, packs: [null] },
])('what is none is nothing: %j', async (found) => {
  expect(await next(place({ ours: found }))).toBeNull();
});

test('of what was kept only what can be packs counts', async () => {
  const packs = [
    { ...pack(1), id: 'x' },
    { ...pack(1), of: 'a/b' },
    { ...pack(1), length: -1 },
    { ...pack(2), length: '3' },
  ];
  const found = await next(place({ ours: { mark: MARK, packs: [...packs, pack(3)] } }));
  expect(found).toEqual({ mark: MARK, packs: [pack(3)] });
});

test('a browser that keeps nothing keeps it for the page', async () => {
  const none = () => Promise.reject(new DOMException('full'));
  const ours = storedIn('ours', { get: none, set: none });
  ours.set({ mark: MARK, packs: [pack(1)] });
  await new Promise((resolve) => setTimeout(resolve));
  expect(ours.get()).toEqual({ mark: MARK, packs: [pack(1)] });
});

test('what is stored when somebody has signed out is kept for nobody', async () => {
  const where = place();
  const ours = storedIn('ours', where);
  ours.set({ mark: MARK, packs: [pack(1)] });
  // It waits for its turn.
  time.since++;
  expect(await next(where)).toBeNull();
  ours.set({ mark: MARK, packs: [pack(1), pack(2)] });
  expect(await next(where)).toBeNull();
  const again = storedIn('ours', where);
  again.set({ mark: MARK, packs: [pack(3)] });
  expect(await next(where)).toEqual({ mark: MARK, packs: [pack(3)] });
});
