import { expect, test } from 'vitest';
import type { Listed } from './kinds.ts';
import { SHORT, Sorted } from './sorted.svelte.ts';

const byName = { column: 'name', isDescending: false };
const backwards = { column: 'name', isDescending: true };

function listOf(count: number, prefix = ''): Listed[] {
  return Array.from({ length: count }, (_, index) => {
    // A permutation, since the factor has no divisor in common with the count.
    const name = `${prefix}${(index * 7_919) % count}`;
    return {
      kind: 'file',
      name,
      path: name,
      size: 0,
      modified: 0,
      target: null,
      is_conflict: false,
      mounted: null,
    };
  });
}

const ends = ({ rows }: Sorted<Listed>) => [rows.length, rows[0]?.name, rows.at(-1)?.name];

/** Notes how long the lists are that are shown from now on. */
function lengths(sorted: Sorted<Listed>): number[] {
  const seen: number[] = [];
  let { rows } = sorted;
  Object.defineProperty(sorted, 'rows', {
    get: () => rows,
    set: (shown: readonly Listed[]) => {
      seen.push(shown.length);
      rows = shown;
    },
  });
  return seen;
}

test('a short list is in order at once, and a long one once it is, with what was there until then', async () => {
  const sorted = new Sorted<Listed>(({ path }) => path);
  sorted.show('a', listOf(SHORT), byName, 'en');
  expect(ends(sorted)).toEqual([SHORT, '0', String(SHORT - 1)]);
  sorted.show('a', listOf(50_000), byName, 'en');
  expect(ends(sorted)).toEqual([SHORT, '0', String(SHORT - 1)]);
  expect(sorted.isSettled).toBe(false);
  await sorted.settled();
  expect(sorted.isSettled).toBe(true);
  expect(ends(sorted)).toEqual([50_000, '0', '49999']);
  sorted.show('a', listOf(50_000), backwards, 'en');
  await sorted.settled();
  expect(ends(sorted)).toEqual([50_000, '49999', '0']);
});

test('a list that changes while it is sorted is shown, and then what it has become', async () => {
  const sorted = new Sorted<Listed>(({ path }) => path);
  sorted.show('a', listOf(50_000), byName, 'en');
  const seen = lengths(sorted);
  sorted.show('a', listOf(50_001), byName, 'en');
  sorted.show('a', listOf(50_002), byName, 'en');
  await sorted.settled();
  expect(seen).toEqual([50_000, 50_002]);
});

test('what nobody wants any more is not shown', async () => {
  const sorted = new Sorted<Listed>(({ path }) => path);
  sorted.show('a', listOf(50_000), byName, 'en');
  sorted.show('a', [], byName, 'en');
  sorted.show('a', listOf(40_000, 'other'), byName, 'en');
  sorted.show('a', listOf(30_000, 'third'), backwards, 'en');
  await sorted.settled();
  expect(ends(sorted)).toEqual([30_000, 'third29999', 'third0']);
  sorted.show('a', listOf(60_000), byName, 'en');
  sorted.show('a', listOf(3), byName, 'en');
  await sorted.settled();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ends(sorted)).toEqual([3, '0', '2']);
});

test('what is in one folder is never shown in another one', async () => {
  const sorted = new Sorted<Listed>(({ path }) => path);
  sorted.show('a', listOf(50_000), byName, 'en');
  await sorted.settled();
  const seen = lengths(sorted);
  sorted.show('a', listOf(50_001), byName, 'en');
  sorted.show('b', listOf(40_000, 'other'), byName, 'en');
  expect(sorted.rows).toEqual([]);
  await sorted.settled();
  expect(seen).toEqual([0, 40_000]);
  expect(ends(sorted)).toEqual([40_000, 'other0', 'other39999']);
});
