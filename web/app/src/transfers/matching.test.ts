import { expect, test } from 'vitest';
import type { Chosen } from './dropped.ts';
import { isSame, match } from './matching.ts';
import type { Unsent } from './remembered.ts';

const MODIFIED_MS = 1_700_000_000_000;

/** A file that was sent with the folders that it was in, or by itself into one. */
function record(path: string, isLoose = false): Unsent {
  const folders = isLoose ? [] : path.split('/').slice(0, -1);
  return {
    ...{ key: path, account: 'ada', workspace: 'w', path, folders, condition: undefined },
    ...{ name: decodeURIComponent(path.split('/').at(-1) ?? ''), size: 3 },
    ...{ modifiedMs: MODIFIED_MS, upload: 'u', delta: null, isPaused: false },
    ...{ handle: null, root: null },
  };
}

function chosen(path: string, text = 'abc', lastModified = MODIFIED_MS): Chosen {
  const folders = path.split('/');
  const name = folders.pop() ?? '';
  return { file: new File([text], name, { lastModified }), folders };
}

const pairs = (list: Unsent[], files: Chosen[]) =>
  match(list, files, ({ folders }) => folders.length > 0).map(({ record: { key } }) => key);

test('a file is known again by name, size and time', () => {
  const one = record('in/a.txt');
  expect(pairs([one], [chosen('a.txt')])).toEqual(['in/a.txt']);
  for (const other of [chosen('b.txt'), chosen('a.txt', 'ab'), chosen('a.txt', 'abc', 1)]) {
    expect(pairs([one], [other])).toEqual([]);
    expect(other.file && isSame(one, other.file)).toBe(false);
  }
});

test('of files that look the same each is found once, and where it was', () => {
  const list = [record('in/x/%C3%BC.txt'), record('in/y/%C3%BC.txt')];
  expect(pairs(list, [chosen('y/ü.txt'), chosen('x/ü.txt'), chosen('z/ü.txt')])).toEqual([
    'in/y/%C3%BC.txt',
    'in/x/%C3%BC.txt',
  ]);
});

test('what has come of a file is not gone on with by another one that looks the same', () => {
  // The first of them is there already, and its twin in another folder is not.
  const list = [record('in/y/v.bin')];
  expect(pairs(list, [chosen('x/v.bin'), chosen('y/v.bin')])).toEqual(['in/y/v.bin']);
  expect(pairs(list, [chosen('x/v.bin')])).toEqual([]);
  // A file by itself could be either.
  expect(pairs([record('in/x/v.bin'), ...list], [chosen('v.bin')])).toEqual([]);
  expect(pairs([record('in/v.bin', true)], [chosen('x/v.bin'), chosen('y/v.bin')])).toEqual([]);
});

test('a file that was sent by itself is found again in whatever folder it lies', () => {
  expect(pairs([record('in/deep/a.txt', true)], [chosen('Downloads/a.txt')])).toEqual([
    'in/deep/a.txt',
  ]);
});

test('a folder is known again whatever signs are in its name, and a file that was to have another name', () => {
  const path = 'in/Album%20%282%29/it%27s%21.txt';
  expect(pairs([record(path)], [chosen("Album (2)/it's!.txt")])).toEqual([path]);
  const renamed = { ...record('in/a%20%282%29.txt'), name: 'a.txt' };
  expect(pairs([renamed], [chosen('a.txt')])).toEqual([renamed.key]);
});

test('a folder with nothing in it is no file', () => {
  expect(match([record('a.txt')], [{ file: null, folders: ['a.txt'] }], () => false)).toEqual([]);
});
