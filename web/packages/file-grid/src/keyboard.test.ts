import { expect, test } from 'vitest';
import { findByName, intentOf, TypeAhead, type Key } from './keyboard.ts';

function key(name: string, more: Partial<Key> = {}): Key {
  return { key: name, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more };
}

test('Shift selects a range, and Ctrl or Cmd moves without selecting', () => {
  const down = { kind: 'move', to: 'down' };
  expect(intentOf(key('ArrowDown'), false)).toEqual({ ...down, reach: 'only' });
  expect(intentOf(key('ArrowDown', { shiftKey: true }), false)).toEqual({
    ...down,
    reach: 'range',
  });
  expect(intentOf(key('ArrowDown', { metaKey: true }), false)).toEqual({ ...down, reach: 'none' });
});

test('Space toggles, but belongs to the name that somebody is typing', () => {
  expect(intentOf(key(' '), false)).toEqual({ kind: 'toggle' });
  expect(intentOf(key(' '), true)).toEqual({ kind: 'type', text: ' ' });
  expect(intentOf(key(' ', { ctrlKey: true }), true)).toEqual({ kind: 'toggle' });
});

test('keys of the page and the browser are left to them', () => {
  for (const event of [
    key('ArrowUp', { altKey: true }),
    key('c', { ctrlKey: true }),
    key('?', { shiftKey: true }),
    key('/'),
    key('Tab'),
    key('F5'),
    key('Delete', { shiftKey: true }),
  ]) {
    expect(intentOf(event, false)).toBeNull();
  }
});

const names = ['Alder', 'birch 1', 'Birch 2', 'cedar', 'Über', '9', '99'];
const find = (text: string, active: number) =>
  findByName(text, names.length, active, (at) => names[at] ?? '');

test('names are found from the active row on, and around the end', () => {
  expect(find('b', -1)).toBe(1);
  expect(find('b', 1)).toBe(2);
  expect(find('bb', 2)).toBe(1);
  expect(find('bi', 1)).toBe(1);
  expect(find('birch 2', 1)).toBe(2);
  expect(find('ü', 0)).toBe(4);
  expect(find('x', 0)).toBeNull();
  expect(find('9', 0)).toBe(5);
  expect(find('99', 5)).toBe(6);
});

test('letters gather while somebody types, and a pause begins anew', () => {
  const typing = new TypeAhead();
  expect(typing.type('a', 0)).toBe('a');
  expect(typing.type('b', 300)).toBe('ab');
  expect(typing.isTyping(900)).toBe(true);
  expect(typing.isTyping(1_100)).toBe(false);
  expect(typing.type('c', 1_100)).toBe('c');
  typing.end();
  expect(typing.isTyping(1_101)).toBe(false);
  expect(typing.type('d', 1_101)).toBe('d');
});
