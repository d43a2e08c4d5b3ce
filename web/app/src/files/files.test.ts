import type { Node } from '@syncline/api';
import { expect, test } from 'vitest';
import { en } from '../words/en.ts';
import { iconOf } from './kinds.ts';
import { endingAt, faultOf, freeName } from './names.ts';
import { sortNodes } from './sort.ts';

function node(name: string, more: Partial<Node> = {}): Node {
  return {
    id: name,
    version: 1,
    etag: '',
    path: name,
    name,
    kind: 'file',
    size: 1,
    modified: 0,
    modified_ns: 0,
    mode: 0,
    target: null,
    is_conflict: false,
    mounted: null,
    ...more,
  };
}

const names = (nodes: Node[]) => nodes.map(({ name }) => name);

test('folders come first, and numbers in names count as numbers', () => {
  const nodes = [node('b10'), node('z', { kind: 'folder' }), node('b9'), node('Ä'), node('a')];
  const sorting = { column: 'name', isDescending: false };
  expect(names(sortNodes(nodes, sorting, 'de'))).toEqual(['z', 'a', 'Ä', 'b9', 'b10']);
  const other = { column: 'name', isDescending: true };
  expect(names(sortNodes(nodes, other, 'de'))).toEqual(['z', 'b10', 'b9', 'Ä', 'a']);
});

test('what is equal in a column is sorted by name, in both directions', () => {
  const nodes = [node('b', { size: 5 }), node('a', { size: 5 }), node('c', { size: 9 })];
  const by = (isDescending: boolean) =>
    names(sortNodes(nodes, { column: 'size', isDescending }, 'en'));
  expect(by(false)).toEqual(['a', 'b', 'c']);
  expect(by(true)).toEqual(['c', 'a', 'b']);
});

test('names that no folder can have are refused with a reason', () => {
  for (const name of ['', '.', '..', 'a/b', '.syncline', 'ü'.repeat(128)]) {
    expect(faultOf(name, en.name), name).not.toBeNull();
  }
  for (const name of ['a', '.hidden', 'ü'.repeat(127), ' ']) {
    expect(faultOf(name, en.name), name).toBeNull();
  }
});

test('a free name keeps its ending', async () => {
  const taken = new Set(['plan (2).tar']);
  const isTaken = (name: string) => Promise.resolve(taken.has(name));
  expect(await freeName('plan.tar', isTaken)).toBe('plan (3).tar');
  expect(await freeName('.profile', isTaken)).toBe('.profile (2)');
  expect(endingAt('plan.tar')).toBe(4);
});

test('a picture says the kind, and of files the family', () => {
  expect(iconOf(node('photo.JPG'))).toBe('image');
  expect(iconOf(node('photo.jpg', { kind: 'folder' }))).toBe('folder');
  expect(iconOf(node('unknown'))).toBe('file');
});
