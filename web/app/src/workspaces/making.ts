// Workspaces that are made here: of encrypted ones the keys, too (`../sealed/making.ts`).

import type { SynclineClient, Workspace } from '@syncline/api';
import type { Words } from '../words/en.ts';

/** The longest name, in bytes. */
export const NAME_LENGTH_MAX = 128;

/** Says what is wrong with the name of a workspace that is to be made beside others, or nothing. */
export function faultOfName(
  name: string,
  list: readonly Pick<Workspace, 'name' | 'role'>[],
  words: Pick<Words, 'making' | 'name'>,
): string | null {
  if (name.trim() === '') return words.name.empty;
  if (/[/\p{Cc}]/u.test(name)) return words.making.control;
  if (new TextEncoder().encode(name).length > NAME_LENGTH_MAX) return words.making.long;
  // The server would make it; the two could be told apart by their ids alone.
  const isTaken = list.some((one) => one.role === 'owner' && one.name === name);
  return isTaken ? words.making.taken(name) : null;
}

/** The shortest passphrase, in characters: `Passphrase::LENGTH_MIN` of the core. */
export const PASSPHRASE_LENGTH_MIN = 8;

/** Says what is wrong with a passphrase that is to be, typed twice, or nothing. */
export function faultOfPassphrase(
  passphrase: string,
  again: string,
  words: Pick<Words, 'making'>,
): string | null {
  if ([...passphrase].length < PASSPHRASE_LENGTH_MIN)
    return words.making.short(PASSPHRASE_LENGTH_MIN);
  return passphrase === again ? null : words.making.differ;
}

/** Makes a workspace that the server can read. */
export function makeWorkspace(client: SynclineClient, name: string): Promise<Workspace> {
  return client.call('POST /workspaces', { body: { name } });
}

/** The program's words that make a workspace of a folder, for somebody at a device. */
export function commandOf(server: string, user: string): string {
  return `syncline login ${server} --user ${user}\nsyncline init ~/Notes`;
}
