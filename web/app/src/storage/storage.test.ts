import type { UsageContent } from '@syncline/api';
import { expect, test } from 'vitest';
import { barOf, DAYS_SHOWN, lastDays, linesOf, namedDays, savedOf, sumOf } from './figures.ts';

const DAY = 86_400;
const TODAY = 20_000 * DAY;
const NOON = (TODAY + DAY / 2) * 1000;

test('the last days are all there, whether something came or not', () => {
  const days = lastDays([{ day: TODAY - 2 * DAY, bytes: 7 }], NOON);
  expect(days.length).toBe(DAYS_SHOWN);
  expect(days.at(-1)).toEqual({ day: TODAY, bytes: 0 });
  expect(days.at(-3)).toEqual({ day: TODAY - 2 * DAY, bytes: 7 });
  expect(days.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(7);
  // A device that is a day ahead is shown, too.
  const ahead = lastDays([{ day: TODAY + DAY, bytes: 1 }], NOON);
  expect([ahead.length, ahead.at(-1)]).toEqual([DAYS_SHOWN, { day: TODAY + DAY, bytes: 1 }]);
});

test('an axis has few lines at sizes that are whole, and the largest is on it', () => {
  expect(linesOf(0)).toEqual([0, 1]);
  expect(linesOf(1)).toEqual([0, 1]);
  expect(linesOf(1000)).toEqual([0, 256, 512, 768, 1024]);
  expect(linesOf(1024 ** 2 * 5)).toEqual([0, 2, 4, 6].map((mib) => mib * 1024 ** 2));
  for (let largest = 1; largest < 1e15; largest = largest * 3 + 1) {
    const lines = linesOf(largest);
    expect(lines.length, String(largest)).toBeLessThanOrEqual(5);
    expect(lines.at(-1)).toBeGreaterThanOrEqual(largest);
    expect(lines.at(-2)).toBeLessThan(largest);
  }
});

test('as many days have names as there is room for, and the last one always', () => {
  expect(namedDays(30, 100)).toHaveLength(30);
  expect(namedDays(30, 5)).toEqual([5, 11, 17, 23, 29]);
  expect(namedDays(30, 3.4)).toEqual([2, 11, 20, 29]);
  expect(namedDays(30, 0)).toEqual([29]);
});

const content = (bytes: number, deleted: number, stored: number): UsageContent => ({
  kinds: [
    { kind: 'image', files: 2, bytes },
    { kind: 'text', files: 1, bytes: 10 },
  ],
  deleted: { files: 1, bytes: deleted },
  packs: { count: 1, stored_bytes: stored, content_bytes: null },
});

test('what is saved is a part of what people have, and may be less than nothing', () => {
  expect(sumOf(content(90, 0, 0))).toEqual({ files: 3, bytes: 100 });
  expect(savedOf(content(90, 100, 50))).toBe(0.75);
  expect(savedOf(content(90, 0, 150))).toBe(-0.5);
  expect(savedOf({ ...content(0, 0, 0), kinds: [] })).toBeNull();
});

test('a bar is seen wherever there is anything', () => {
  expect([barOf(0, 10), barOf(0, 0), barOf(5, 10), barOf(10, 10)]).toEqual([0, 0, 0.5, 1]);
  expect(barOf(1, 1e9)).toBeGreaterThan(0);
});
