import { expect, test } from 'vitest';
import { isInside, OVERSCAN, rowOfSlot, scrollTopFor, windowOf } from './window.ts';

const view = { count: 100_000, rowHeight: 36, height: 540, scrollTop: 0 };

test('every row near the view has exactly one slot, wherever it is scrolled', () => {
  for (const scrollTop of [0, 1, 35, 36, 5_000, 1_234_567, 3_599_460]) {
    const shown = windowOf({ ...view, scrollTop });
    const rows = Array.from({ length: shown.slots }, (_, slot) => rowOfSlot(shown, slot));
    const sorted = rows.toSorted((a, b) => a - b);
    expect(sorted).toEqual(Array.from({ length: shown.slots }, (_, at) => shown.start + at));
    const first = Math.floor(scrollTop / 36);
    const last = Math.min(view.count - 1, Math.floor((scrollTop + view.height - 1) / 36));
    expect(isInside(shown, first) && isInside(shown, last)).toBe(true);
  }
});

test('scrolling by one row gives one slot another row', () => {
  const before = windowOf({ ...view, scrollTop: 36 * 500 });
  const after = windowOf({ ...view, scrollTop: 36 * 501 });
  let changed = 0;
  for (let slot = 0; slot < before.slots; slot++) {
    if (rowOfSlot(before, slot) !== rowOfSlot(after, slot)) changed += 1;
  }
  expect(changed).toBe(1);
});

test('few rows have as many slots, and none have none', () => {
  expect(windowOf({ ...view, count: 3 })).toEqual({ start: 0, slots: 3 });
  expect(windowOf({ ...view, count: 0 })).toEqual({ start: 0, slots: 0 });
  expect(windowOf(view).slots).toBe(16 + 2 * OVERSCAN);
});

test('a row is scrolled to no further than needed', () => {
  expect(scrollTopFor(5, view)).toBe(0);
  expect(scrollTopFor(15, view)).toBe(36);
  expect(scrollTopFor(10, { ...view, scrollTop: 720 })).toBe(360);
});
