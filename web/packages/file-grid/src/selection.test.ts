import { expect, test } from 'vitest';
import { clear, NOTHING, select, selectAll, toggle, type Order } from './selection.ts';

const keys = ['a', 'b', 'c', 'd', 'e'];
const order: Order = {
  count: keys.length,
  keyAt: (index) => keys[index] ?? '',
  indexOf: (key) => (keys.includes(key) ? keys.indexOf(key) : undefined),
};
const of = (selection: { keys: ReadonlySet<string> }) => [...selection.keys].sort().join('');

test('a range grows and shrinks around its anchor', () => {
  const start = select(NOTHING, order, 2, 'only');
  expect(of(select(start, order, 4, 'range'))).toBe('cde');
  expect(of(select(select(start, order, 4, 'range'), order, 1, 'range'))).toBe('bc');
});

test('a walk without selecting moves the active row alone', () => {
  const walked = select(select(NOTHING, order, 0, 'only'), order, 3, 'none');
  expect(of(walked)).toBe('a');
  expect(walked.active).toBe('d');
});

test('a toggle adds or removes one row and begins a range there', () => {
  const two = toggle(select(NOTHING, order, 0, 'only'), 'd');
  expect(of(two)).toBe('ad');
  expect(of(select(two, order, 2, 'range'))).toBe('cd');
  expect(of(toggle(two, 'a'))).toBe('d');
});

test('a range whose anchor is gone begins at its target', () => {
  const gone = { keys: new Set(['x']), active: 'x', anchor: 'x' };
  expect(of(select(gone, order, 1, 'range'))).toBe('b');
});

test('all are selected, and none again, and the active row stays', () => {
  const all = selectAll(select(NOTHING, order, 1, 'only'), order);
  expect(of(all)).toBe('abcde');
  expect(clear(all)).toMatchObject({ active: 'b', keys: new Set() });
});
