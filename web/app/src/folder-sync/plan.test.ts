import { expect, test } from 'vitest';
import { conflictName, isName, isOwn, labelOf, originalName } from './names.ts';
import {
  decide,
  hasLostAll,
  hasNothingOf,
  isMassDeletion,
  type Base,
  type Local,
  type Remote,
} from './plan.ts';

const file = (digest: string | null, more: Partial<Local> = {}): Local => ({
  kind: 'file',
  size: 1,
  modifiedMs: 2,
  digest,
  compared: null,
  readMs: 9_000,
  ...more,
});
const equal = { etag: 'n-2', isEqual: true };
const unequal = { etag: 'n-2', isEqual: false };
const there = (version: number, more: Partial<Remote> = {}): Remote => ({
  kind: 'file',
  node: 'n',
  version,
  etag: `n-${version}`,
  size: 1,
  ...more,
});
const base: Base = { kind: 'file', node: 'n', version: 1, size: 1, modifiedMs: 1, digest: 'a' };
const same = file(null, { modifiedMs: 1 });
const folder = { kind: 'folder', size: 0, modifiedMs: 0 } as const;
const folderHere = file(null, folder);
const folderThere = there(1, folder);
const folderBase: Base = { ...base, ...folder, digest: '' };

// The rows of the table in docs/design/sync.md, "Plan", in their order, with the steps that lead there.
test.each([
  ['unknown, present', file(null), undefined, undefined, 'propose'],
  ['a folder that is unknown', folderHere, undefined, undefined, 'propose'],
  ['nothing changed', same, there(1), base, null],
  ['touched here', file(null), there(1), base, 'read'],
  ['touched, and the same', file('a'), there(1), base, 'refresh'],
  [
    'read so soon after its change that no time of it is remembered',
    file('a', { modifiedMs: 8_999 }),
    there(1),
    { ...base, modifiedMs: -1 },
    null,
  ],
  ['read long after that', file('a'), there(1), { ...base, modifiedMs: -1 }, 'refresh'],
  ['changed here', file('b'), there(1), base, 'propose'],
  [
    'changed here while nobody knows what was sent',
    file('a'),
    there(1),
    { ...base, digest: '' },
    'propose',
  ],
  ['changed there, perhaps', same, there(2), base, 'compare'],
  ['changed there', file(null, { modifiedMs: 1, compared: unequal }), there(2), base, 'set-matter'],
  ['set back there, perhaps', same, there(1), { ...base, version: 3 }, 'compare'],
  ['set back there', same, there(1, { size: 3 }), { ...base, version: 3 }, 'keep-copy'],
  ['changed there, another length', same, there(2, { size: 3 }), base, 'set-matter'],
  [
    'another version of the same',
    file(null, { modifiedMs: 1, compared: equal }),
    there(2),
    base,
    'accept',
  ],
  ['changed there, touched here', file(null), there(2, { size: 3 }), base, 'read'],
  [
    'changed there, touched and the same here',
    file('a'),
    there(2, { size: 3 }),
    base,
    'set-matter',
  ],
  ['changed on both sides, perhaps equal', file('b'), there(2), base, 'compare'],
  ['changed on both sides, equal', file('b', { compared: equal }), there(2), base, 'accept'],
  ['changed on both sides', file('b', { compared: unequal }), there(2), base, 'keep-copy'],
  ['compared with another version', file('b', { compared: equal }), there(3), base, 'compare'],
  ['another node of that name', same, there(1, { node: 'm', size: 3 }), base, 'set-matter'],
  ['no base, perhaps equal', file(null), there(2), undefined, 'compare'],
  ['no base, equal', file(null, { compared: equal }), there(2), undefined, 'accept'],
  ['no base, different', file(null, { compared: unequal }), there(2), undefined, 'keep-copy'],
  ['no base, another length', file(null), there(2, { size: 3 }), undefined, 'keep-copy'],
  ['folders without a base', folderHere, folderThere, undefined, 'accept'],
  ['folders that agree', folderHere, folderThere, folderBase, null],
  ['a folder made anew', folderHere, { ...folderThere, node: 'm' }, folderBase, 'accept'],
  ['deleted here', undefined, there(1), base, 'propose-delete'],
  ['deleted here, changed there', undefined, there(2), base, 'materialise'],
  [
    'a folder deleted here, made anew there',
    undefined,
    { ...folderThere, node: 'm' },
    folderBase,
    'materialise',
  ],
  ['never here', undefined, there(1), undefined, 'materialise'],
  ['deleted there', same, undefined, base, 'remove'],
  ['deleted there, touched here', file(null), undefined, base, 'read'],
  ['deleted there, touched and the same here', file('a'), undefined, base, 'remove'],
  ['deleted there, changed here', file('b'), undefined, base, 'propose'],
  ['a folder deleted there', folderHere, undefined, folderBase, 'remove'],
  ['deleted on both sides', undefined, undefined, base, 'forget'],
  ['a file here, a folder there', file(null), folderThere, undefined, 'keep-copy'],
  ['a folder here, a file there', folderHere, there(1), undefined, 'blocked'],
  ['a folder in place of the file there', same, folderThere, base, 'remove'],
  [
    'a folder in place of the file there, which was changed here',
    file('b'),
    folderThere,
    base,
    'keep-copy',
  ],
  ['a folder in place of the file here', folderHere, there(1), base, 'propose-delete'],
  [
    'a folder in place of the file here, which was changed there',
    folderHere,
    there(2),
    base,
    'blocked',
  ],
  ['a file in place of the folder there', folderHere, there(1), folderBase, 'remove'],
  ['a file in place of the folder here', file(null), folderThere, folderBase, 'propose-delete'],
  ['two files in place of a folder', file(null), there(2), folderBase, 'compare'],
  [
    'a file in place of a folder, which is gone there',
    file(null),
    undefined,
    folderBase,
    'propose',
  ],
  [
    'a file in place of a folder there, which is gone here',
    undefined,
    there(2),
    folderBase,
    'materialise',
  ],
] as const)('%s', (_, local, remote, row, expected) => {
  expect(decide(local, remote, row)).toBe(expected);
});

test('a conflict has the name that the programs give it', () => {
  const name = (text: string, attempt = 0) => conflictName(text, 'conflict laptop', attempt);
  expect(name('report.odt')).toBe('report (conflict laptop).odt');
  expect(name('report.odt', 1)).toBe('report (conflict laptop 2).odt');
  expect(name('.profile')).toBe('.profile (conflict laptop)');
  expect(name('a (conflict v7).txt')).toBe('a (conflict laptop).txt');
  expect(name('(conflict v7).txt')).toBe('(conflict v7) (conflict laptop).txt');
  const long = name(`${'ü'.repeat(125)}.txt`);
  expect(new TextEncoder().encode(long).length).toBeLessThanOrEqual(255);
  expect(long).toMatch(/^ü+ \(conflict laptop\)\.txt$/);
  expect(new TextEncoder().encode(name(`a.${'x'.repeat(250)}`)).length).toBe(255);
  expect(labelOf('a/b')).toBe('conflict a_b');
});

test('names that the server does not take, and those of ours', () => {
  expect(['', 'x'.repeat(256), 'ü'.repeat(128), '\ud800'].map(isName)).not.toContain(true);
  expect(isName('ü'.repeat(127))).toBe(true);
  expect(['.syncline', '.syncline-trash', 'a.crswap'].map(isOwn)).not.toContain(false);
  expect(isOwn('.synclineignore')).toBe(false);
});

test('much that is absent at once is asked about, less where nothing is as it was, and whatever is where all is gone', () => {
  const isAsked = (absent: number, all: number, how: 'gone' | 'other' | 'same') =>
    isMassDeletion(absent, all, { isGone: how === 'gone', isOther: how !== 'same' });
  expect(isAsked(51, 170, 'same')).toBe(false);
  expect(isAsked(51, 169, 'same')).toBe(true);
  expect(isAsked(50, 60, 'same')).toBe(false);
  expect(isAsked(4, 13, 'other')).toBe(true);
  expect(isAsked(4, 14, 'other')).toBe(false);
  // A document that was saved, and the lock of its program, which is gone.
  expect(isAsked(1, 2, 'other')).toBe(false);
  expect(isAsked(3, 3, 'other')).toBe(false);
  expect(isAsked(2, 2, 'gone')).toBe(true);
  expect(isAsked(1, 1, 'gone')).toBe(false);
  expect(isAsked(0, 2, 'gone')).toBe(false);
});

test('a folder with other files in it has lost all of its own', () => {
  const rows = new Map([
    ['f', base],
    ['d', folderBase],
  ]);
  const hasLost = (...local: [string, Local][]) => hasLostAll(new Map(local), rows);
  expect(hasLost()).toBe(true);
  expect(hasLost(['d', folderHere], ['x', same])).toBe(true);
  expect(hasLost(['f', folderHere])).toBe(true);
  // It was only changed.
  expect(hasLost(['f', file('b')])).toBe(false);
  const folders = new Map([['d', folderBase]]);
  expect(hasLostAll(new Map([['d', folderHere]]), folders)).toBe(false);
  expect(hasLostAll(new Map([['e', folderHere]]), folders)).toBe(true);
});

test('another disk is known by that no file on it is one that was there', () => {
  const rows = new Map([
    ['f', base],
    ['g', { ...base, modifiedMs: -1 }],
    ['d', folderBase],
  ]);
  const isOther = (...local: [string, Local][]) => hasNothingOf(new Map(local), rows);
  expect(isOther()).toBe(true);
  expect(isOther(['d', folderHere], ['x', same])).toBe(true);
  expect(isOther(['f', file('b')])).toBe(true);
  expect(isOther(['f', same])).toBe(false);
  // Nobody remembers when it was changed.
  expect(isOther(['g', { ...same, modifiedMs: 77 }])).toBe(false);
  expect(isOther(['g', { ...same, size: 77 }])).toBe(true);
  const folders = new Map([['d', folderBase]]);
  expect(hasNothingOf(new Map([['d', folderHere]]), folders)).toBe(false);
  expect(hasNothingOf(new Map([['e', folderHere]]), folders)).toBe(true);
});

test('a copy is known by its name, and nothing else is taken for one', () => {
  const original = (text: string) => originalName(text, 'conflict laptop');
  for (const name of ['report.odt', 'README', '.profile', 'a (b).tar.gz']) {
    for (const attempt of [0, 1, 9, 41]) {
      expect(original(conflictName(name, 'conflict laptop', attempt))).toBe(name);
    }
  }
  for (const name of [
    'a.txt',
    'a (conflict laptop 1).txt',
    'a (conflict laptops).txt',
    'a (conflict x).txt',
    ' (conflict laptop)',
  ]) {
    expect(original(name)).toBeNull();
  }
});
