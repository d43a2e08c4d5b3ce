import type { SynclineClient, Workspace } from '@syncline/api';
import { expect, test } from 'vitest';
import { de } from '../words/de.ts';
import { en } from '../words/en.ts';
import { commandOf, faultOfName, faultOfPassphrase, makeWorkspace } from './making.ts';

const list = [
  { name: 'Notes', role: 'owner' },
  { name: 'Shared', role: 'edit' },
] as const;

test('names that the server refuses are refused with a reason, in both languages', () => {
  for (const words of [en, de]) {
    expect(faultOfName('', list, words)).toBe(words.name.empty);
    expect(faultOfName('  ', list, words)).toBe(words.name.empty);
    for (const name of ['a/b', 'a\nb', '\u007f']) {
      expect(faultOfName(name, list, words), JSON.stringify(name)).toBe(words.making.control);
    }
    expect(faultOfName('ü'.repeat(65), list, words)).toBe(words.making.long);
    expect(faultOfName('Notes', list, words)).toBe(words.making.taken('Notes'));
  }
});

test('what others share does not take a name, and 128 bytes are one', () => {
  for (const name of ['Shared', 'notes', 'ü'.repeat(64), 'a.b', '..']) {
    expect(faultOfName(name, list, en), name).toBeNull();
  }
});

test('a workspace is made under the name as it was typed', async () => {
  const asked: unknown[] = [];
  const made = { id: 'x', name: ' a ' } as Workspace;
  const call = (...all: unknown[]) => Promise.resolve((asked.push(all), made));
  const client = { call } as unknown as SynclineClient;
  expect(await makeWorkspace(client, ' a ')).toBe(made);
  expect(asked).toEqual([['POST /workspaces', { body: { name: ' a ' } }]]);
});

test('the words for a device name the server and who signs in', () => {
  expect(commandOf('https://x', 'ada')).toBe(
    'syncline login https://x --user ada\nsyncline init ~/Notes',
  );
});

test('a passphrase has as many characters as the core asks for, and is typed twice', () => {
  for (const words of [en, de]) {
    expect(faultOfPassphrase('1234567', '1234567', words)).toBe(words.making.short(8));
    expect(faultOfPassphrase('😀'.repeat(7), '😀'.repeat(7), words)).toBe(words.making.short(8));
    expect(faultOfPassphrase('12345678', '12345679', words)).toBe(words.making.differ);
    expect(faultOfPassphrase('12345678', '12345678', words)).toBeNull();
  }
});
