import { expect, test } from 'vitest';
import { oneAtATime } from './one-at-a-time.ts';

test('what is asked for often is done once at a time and once more, for all who asked meanwhile', async () => {
  const ends: (() => void)[] = [];
  const done: string[] = [];
  const ask = oneAtATime(() => new Promise((resolve) => ends.push(resolve)));
  const asking = (name: string) => ask().then(() => done.push(name));
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  const all = [asking('first')];
  for (let count = 0; count < 100; count++) all.push(asking('meanwhile'));
  await turn();
  expect([ends.length, done.length]).toEqual([1, 0]);
  ends[0]?.();
  // Who asks in this very moment shares the one that begins.
  all.push(asking('meanwhile'));
  await turn();
  expect([ends.length, done]).toEqual([2, ['first']]);
  all.push(asking('last'));
  ends[1]?.();
  await turn();
  expect([ends.length, done.length]).toEqual([3, 102]);
  ends[2]?.();
  await Promise.all(all);
  expect(done.at(-1)).toBe('last');
  void asking('again');
  expect(ends.length).toBe(4);
});

test('what fails is done again for who asked meanwhile', async () => {
  let count = 0;
  const ask = oneAtATime(async () => {
    await Promise.resolve();
    if (++count === 1) throw new Error('away');
  });
  const [first, second] = [ask(), ask()];
  await expect(first).rejects.toThrow('away');
  await second;
  expect(count).toBe(2);
});
