// What a name and a password have to be. The server says the same of names; of passwords it learns nothing, so the page says all there is.

import type { join } from '../words/en/join.ts';

type Words = typeof join;
export type Advice = keyof Words['advice'];

const NAME_LENGTH_MAX = 64;
const LENGTH_MIN = 8;
/** From here on length alone is enough. */
const LENGTH_GOOD = 14;
const BYTES_MAX = 1024;
/** A password with fewer different letters is soon tried. */
const DIFFERENT_MIN = 5;

/** What people choose first, and programs try first; endings of digits and signs do not count. */
const COMMON = new Set(
  'password passwort passw0rd letmein welcome willkommen iloveyou administrator syncline sunshine princess football baseball dragon monkey master superman trustno1 hallo schatz qwertyuiop qwertzuiop'.split(
    ' ',
  ),
);

/** Letters as they stand beside each other. */
const ROWS = [
  'abcdefghijklmnopqrstuvwxyz',
  '01234567890',
  'qwertyuiop',
  'qwertzuiop',
  'asdfghjkl',
  'yxcvbnm',
  'zxcvbnm',
];

/** Says what is wrong with the name of an account, or nothing. */
export function faultOfName(name: string, words: Words): string | null {
  if (name === '') return words.nameEmpty;
  if (!/^[A-Za-z0-9._@+-]+$/.test(name)) return words.nameSigns;
  if (/^[.-]/.test(name)) return words.nameStart;
  return name.length > NAME_LENGTH_MAX ? words.nameLong : null;
}

/** Tells whether one letter stands beside another, or is the same. */
function isNext(one: string, other: string): boolean {
  return (
    one === other || ROWS.some((row) => row.includes(one + other) || row.includes(other + one))
  );
}

/** Tells whether a password is made of little: few letters, or pieces of rows of the keyboard. */
function isSimple(letters: string[]): boolean {
  if (new Set(letters).size < DIFFERENT_MIN) return true;
  const next = letters.filter(
    (letter, place) => place > 0 && isNext(letters[place - 1] ?? '', letter),
  );
  return next.length >= (letters.length - 1) * 0.75;
}

/** Says what to make of a password beside that name. */
export function adviceOn(password: string, name: string): Advice {
  const letters = Array.from(password.toLowerCase());
  if (letters.length < LENGTH_MIN) return 'short';
  if (new TextEncoder().encode(password).length > BYTES_MAX) return 'long';
  const word = letters.join('').replace(/[^\p{L}]+$/u, '');
  if (COMMON.has(word) || COMMON.has(letters.join(''))) return 'common';
  if (name !== '' && [word, letters.join('')].includes(name.toLowerCase())) return 'common';
  if (isSimple(letters)) return 'simple';
  return letters.length < LENGTH_GOOD ? 'longer' : 'good';
}

/** Tells whether a password may be used, if only just. */
export function mayBeUsed(advice: Advice): boolean {
  return !['short', 'long', 'common'].includes(advice);
}
