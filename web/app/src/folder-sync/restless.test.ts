import { expect, test } from 'vitest';
import { Restless } from './restless.ts';

test('what changes in each round is spoken of, until there is a round without', () => {
  const restless = new Restless(2);
  const paths = (changed: string[]) => restless.note(changed).map(({ path }) => path);
  expect([paths(['a', 'b']), paths(['a']), paths(['a', 'b']), paths(['a'])]).toEqual([
    [],
    [],
    ['a'],
    ['a'],
  ]);
  expect([paths([]), paths(['a'])]).toEqual([[], []]);
});
