import { expect, test } from 'vitest';
import { surplus } from './sketches.ts';

const use = (key: string, length: number, madeMs: number) => ({ key, length, madeMs });

test('the oldest sketches go when all together are too long', () => {
  const uses = [use('old', 30, 1), use('new', 40, 3), use('middle', 30, 2)];
  expect(surplus(uses, 100)).toEqual([]);
  expect(surplus(uses, 99)).toEqual(['old']);
  expect(surplus(uses, 69)).toEqual(['middle', 'old']);
  expect(surplus(uses, 39)).toEqual(['new', 'middle', 'old']);
  expect(surplus(uses, 100, 2)).toEqual(['old']);
});
