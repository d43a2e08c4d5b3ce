import { expect, test } from 'vitest';
import { compare, type Row } from './lines.ts';

const text = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');

/** Each row as people know them. */
function said(rows: readonly Row[] | null): string[] {
  const one = (row: Row): string => {
    if (row.kind === 'folded') return `… ${row.rows.length}`;
    if (row.kind === 'same') return `${row.before},${row.after}  ${row.text}`;
    const parts = row.parts.map((part) => (part.isMarked ? `[${part.text}]` : part.text)).join('');
    return row.kind === 'removed' ? `${row.before}- ${parts}` : `${row.after}+ ${parts}`;
  };
  return (rows ?? []).map(one);
}

test('what went and what came stands where it is, with what differs in a line', () => {
  const rows = compare(text('one', 'two words', 'three'), text('one', 'two birds', 'three'));
  expect(said(rows)).toEqual([
    '1,1  one',
    '2- two [words]',
    '2+ two [birds]',
    '3,3  three',
    '4,4  ',
  ]);
  expect(said(compare('', text('a')))).toEqual(['1+ a', '2+ ']);
  expect(said(compare(text('a'), ''))).toEqual(['1- a', '2- ']);
  expect(said(compare('', ''))).toEqual([]);
});

test('lines that are moved or put in between keep the others where they are', () => {
  const rows = compare(text('a', 'b', 'c'), text('b', 'new', 'newer', 'c'));
  expect(said(rows)).toEqual(['1- a', '2,1  b', '2+ new', '3+ newer', '3,4  c', '4,5  ']);
});

test('what is the same far from what differs is folded, and nothing is lost in it', () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${String(index)}`);
  const changed = lines.with(20, 'another');
  const rows = compare(text(...lines), text(...changed));
  expect(said(rows)).toEqual([
    '… 17',
    ...[17, 18, 19].map((at) => `${at + 1},${at + 1}  line ${at}`),
    '21- line 20',
    '21+ another',
    ...[21, 22, 23].map((at) => `${at + 1},${at + 1}  line ${at}`),
    '… 17',
  ]);
  const all = (rows ?? []).flatMap((row) => (row.kind === 'folded' ? row.rows : [row]));
  const old = all.filter(({ kind }) => kind !== 'added').length;
  expect([old, all.length]).toEqual([41, 42]);
  expect(said(compare(text('a', 'b'), text('a', 'b')))).toEqual(['… 3']);
});

test('ends of lines as Windows writes them count where the two differ in them only', () => {
  const windows = text('a', 'b').replaceAll('\n', '\r\n');
  expect(said(compare(windows, windows.replace('b', 'c')))).toEqual([
    '1,1  a',
    '2- b',
    '2+ c',
    '3,3  ',
  ]);
  expect(said(compare(windows, text('a', 'b')))).toEqual([
    '1- a[␍]',
    '2- b[␍]',
    '1+ a',
    '2+ b',
    '3,3  ',
  ]);
});

test('two texts that have nothing in common are not compared for ever', () => {
  const noise = (seed: number) =>
    text(...Array.from({ length: 20_000 }, (_, index) => String((index * seed) % 1_000_003)));
  expect(compare(noise(7_919), noise(104_729), 200)).toBeNull();
});
