import { expect, test } from 'vitest';
import { join as words } from '../words/en/join.ts';
import { adviceOn, faultOfName, mayBeUsed } from './rules.ts';

test('a name is what the server takes for one', () => {
  for (const name of ['ada', 'Ada.Lovelace', 'ada@example.org', '_x', '+1', 'x'.repeat(64)]) {
    expect(faultOfName(name, words), name).toBeNull();
  }
  expect(faultOfName('', words)).toBe(words.nameEmpty);
  for (const name of ['.ada', '-ada']) expect(faultOfName(name, words)).toBe(words.nameStart);
  for (const name of ['ada lovelace', 'a/b', 'jürgen', ' ada', 'ada\n']) {
    expect(faultOfName(name, words), name).toBe(words.nameSigns);
  }
  expect(faultOfName('x'.repeat(65), words)).toBe(words.nameLong);
});

test('what is tried first is refused, and what is easy is said to be', () => {
  const cases = {
    short: ['', 'a', 'x7$kq!a', '🦊🦊🦊🦊🦊🦊🦊'],
    long: ['ä1bC-'.repeat(171) + 'x'.repeat(500)],
    common: ['password', 'Password123!', 'WILLKOMMEN1', 'ada.lovelace', 'Ada.Lovelace99'],
    simple: [
      'aaaaaaaaaaaaaaaaaaaa',
      'abababababab',
      '123456789',
      'qwertasdfg',
      '87654321',
      'abcdefgh',
    ],
    longer: ['x7$kq!am', 'kaffee-tisch'],
    good: ['correct horse battery staple', 'x7$kq!am-92hd7b'],
  } as const;
  for (const [advice, passwords] of Object.entries(cases)) {
    for (const password of passwords) {
      expect(adviceOn(password, 'ada.lovelace'), password).toBe(advice);
      expect(mayBeUsed(adviceOn(password, 'ada.lovelace'))).toBe(
        ['simple', 'longer', 'good'].includes(advice),
      );
    }
  }
  expect(adviceOn('correct horse battery staple', '')).toBe('good');
});
