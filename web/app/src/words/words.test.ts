import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NoConnection, ProblemError } from '@syncline/api';
import { expect, test } from 'vitest';
import { folderSync as germanSync } from './de/folder-sync.ts';
import { join as germanJoin } from './de/join.ts';
import { lab as germanLab } from './de/lab.ts';
import { pairing as germanPairing } from './de/pairing.ts';
import { storage as germanStorage } from './de/storage.ts';
import { de } from './de.ts';
import { folderSync as englishSync } from './en/folder-sync.ts';
import { join as englishJoin } from './en/join.ts';
import { lab as englishLab } from './en/lab.ts';
import { pairing as englishPairing } from './en/pairing.ts';
import { storage as englishStorage } from './en/storage.ts';
import { en } from './en.ts';
import { formatAgo, formatDuration, formatSize, shownName } from './format.ts';
import { pluralOf } from './plural.ts';
import { problemText } from './problem.ts';

/** The words that come with their views. */
const ENGLISH = {
  lab: englishLab,
  folderSync: englishSync,
  join: englishJoin,
  pairing: englishPairing,
  storage: englishStorage,
};

function leavesOf(value: object, before = ''): [string, unknown][] {
  return Object.entries(value).flatMap(([key, one]) =>
    typeof one === 'object' && one !== null
      ? leavesOf(one as object, `${before}${key}.`)
      : [[`${before}${key}`, one] as [string, unknown]],
  );
}

test('both languages have the same entries, and none is empty', () => {
  const [english, german] = [
    leavesOf({ ...en, ...ENGLISH }),
    leavesOf({
      ...de,
      lab: germanLab,
      folderSync: germanSync,
      join: germanJoin,
      pairing: germanPairing,
      storage: germanStorage,
    }),
  ];
  expect(german.map(([key]) => key)).toEqual(english.map(([key]) => key));
  for (const [key, text] of [...english, ...german]) expect(text, key).not.toBe('');
});

test('every entry is said somewhere', () => {
  const source = join(import.meta.dirname, '..');
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' });
  const users = files.filter(
    (name) => /\.(svelte|ts)$/.test(name) && !/words.(en|de)(\.ts|\/.*)$/.test(name),
  );
  const text = users.map((name) => readFileSync(join(source, name), 'utf8')).join('\n');
  // Errors are found by their code, and themes, rights and states of links by their name.
  const isLookedUp =
    /^(errors\.|activity\.happened\.|lab\.(methods|edits|notes)\.|storage\.kinds\.|account\.(read|write)$|folderSync\.(states|reasons)\.|join\.(gone|advice)\.|pairing\.errors\.|folderSync\.(device|twice)$|relocating\.\w+\.|settings\.(system|light|dark)$|sharing\.(owner|edit|view|open|expired|used_up|suspended)$)/;
  const unused = leavesOf({ ...en, ...ENGLISH })
    .map(([key]) => key)
    .filter((key) => !isLookedUp.test(key) && !text.includes(`.${key.split('.').at(-1)}`));
  expect(unused).toEqual([]);
});

test('words follow their number', () => {
  expect(en.files.count(1)).toBe('1 item');
  expect(en.files.count(1_200)).toBe('1,200 items');
  expect(de.files.count(1_200)).toBe('1.200 Elemente');
  const polish = pluralOf('pl', {
    one: '# plik',
    few: '# pliki',
    many: '# plików',
    other: '# pliku',
  });
  expect([1, 3, 5].map(polish)).toEqual(['1 plik', '3 pliki', '5 plików']);
});

test('sizes have three digits that count', () => {
  expect(formatSize(0, 'en')).toBe('0 B');
  expect(formatSize(1023, 'en')).toBe('1,023 B');
  expect(formatSize(1536, 'en')).toBe('1.5 KiB');
  expect(formatSize(11_000_000, 'de')).toBe('10,5 MiB');
  expect(formatSize(432_932_782_080, 'en')).toBe('403 GiB');
});

test('moments of the last week are told by how long ago they were', () => {
  const now = Date.UTC(2026, 10, 22, 12);
  const ago = (seconds: number) => formatAgo(now / 1000 - seconds, now, 'en');
  expect(ago(5)).toBe('now');
  expect(ago(3 * 60)).toBe('3 minutes ago');
  expect(ago(86_400)).toBe('yesterday');
  expect(ago(30 * 86_400)).toBe('Oct 23, 2026');
  expect(ago(-86_400)).toBe('Nov 23, 2026');
  expect(formatAgo(now / 1000 - 7_200, now, 'de')).toBe('vor 2 Stunden');
});

test('how long something takes is said as people say it', () => {
  expect([1, 12, 55, 58, 200, 3_599].map((seconds) => formatDuration(seconds, 'en'))).toEqual([
    '5 seconds',
    '15 seconds',
    '55 seconds',
    '1 minute',
    '3 minutes',
    '1 hour',
  ]);
  expect(formatDuration(5_400, 'de')).toBe('1 Stunde 30 Minuten');
  expect(formatDuration(100_000, 'de')).toBe('28 Stunden');
});

test('a problem is told in words, and one without words with its code', () => {
  const problem = (code: string) =>
    new ProblemError({ type: '', title: '', detail: 'the moon is full', status: 400, code });
  expect(problemText(problem('over_quota'), en)).toBe(en.errors.over_quota);
  expect(problemText(problem('strange'), en)).toBe('the moon is full (strange)');
  expect(problemText(problem('other'), en)).toBe('the moon is full (other)');
  expect(problemText(new NoConnection('x'), de)).toBe(de.errors.unreachable);
  const unreadable = { path: 'a/b', cause: problem('over_quota') };
  const error = Object.assign(new Error('a/b'), { name: 'FileUnreadable' }, unreadable);
  expect(problemText(error, en)).toBe(en.errors.unreadable('a/b', en.errors.over_quota));
  const full = new DOMException('full', 'QuotaExceededError');
  expect(problemText(full, en)).toBe(en.errors.browser_full);
});

test('a name that would look like another one is written out, and any other is left as it is', () => {
  expect(shownName('a\u202egpj.exe')).toBe('a\\u{202e}gpj.exe');
  expect(shownName('x\u2067y\u061cz')).toBe('x\\u{2067}y\\u{61c}z');
  expect(shownName('one\nline\u0085')).toBe('one\\u{a}line\\u{85}');
  for (const name of ['שלום.txt', 'رسالة (٢).pdf', 'né 🎉 <b>.md', 'C:\\u{202e}'])
    expect(shownName(name)).toBe(name);
});
