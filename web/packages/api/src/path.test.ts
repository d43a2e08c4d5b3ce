import { expect, test } from 'vitest';
import { encodeName, joinPath, nameOf, parentOf, partsOf } from './path.ts';

test('names are encoded as the server does it', () => {
  expect(encodeName('10 % off & more.txt')).toBe('10%20%25%20off%20%26%20more.txt');
  expect(encodeName("it's (1)*!")).toBe('it%27s%20%281%29%2A%21');
  expect(encodeName('größe~_-.')).toBe('gr%C3%B6%C3%9Fe~_-.');
});

test('a path tells its name and the folders around it', () => {
  const path = joinPath(joinPath('', 'a b'), 'c/d');
  expect(path).toBe('a%20b/c%2Fd');
  expect(nameOf(path)).toBe('c/d');
  expect(parentOf(path)).toBe('a%20b');
  expect(parentOf('a')).toBe('');
  expect(partsOf('a/b/c')).toEqual(['a', 'a/b', 'a/b/c']);
  expect(partsOf('')).toEqual([]);
});

test('a name of bytes that are no text is shown with replacements, and its path stays', () => {
  expect(nameOf('x/%FFa')).toBe('\uFFFDa');
});
