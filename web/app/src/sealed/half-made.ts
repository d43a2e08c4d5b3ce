// What is known of an encrypted workspace while it is made: its locked keys, which the server gets behind its genesis. Should the page go away
// between the two, the next one brings them there; without them nobody could ever open the workspace. They open nothing without the passphrase.

import {
  bytesOfHex,
  hexOf,
  OtherKeys,
  ProblemError,
  putLockedKeys,
  type SynclineClient,
} from '@syncline/api';

type Bytes = Uint8Array<ArrayBuffer>;

/** What the server gets. */
export interface HalfMade {
  id: string;
  generation: number;
  keys: Bytes;
}

/** So long another page may still be about to make the workspace. */
const MAKING_MS = 24 * 60 * 60 * 1000;

const prefixOf = (account: string) => `syncline.half-made.${account}.`;

export function remember(account: string, { id, generation, keys }: HalfMade): void {
  const record = { id, generation, keys: hexOf(keys), sinceMs: Date.now() };
  try {
    localStorage.setItem(prefixOf(account) + id, JSON.stringify(record));
  } catch {
    // A browser that keeps nothing cannot go on either.
  }
}

export function forget(account: string, id: string): void {
  localStorage.removeItem(prefixOf(account) + id);
}

function remembered(account: string): { half: HalfMade; sinceMs: number }[] {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefixOf(account)));
  return keys.flatMap((key) => {
    try {
      const { id, generation, keys, sinceMs } = JSON.parse(localStorage.getItem(key) ?? '') as {
        [name in 'id' | 'keys']: string;
      } & { [name in 'generation' | 'sinceMs']: number };
      return [{ half: { id, generation, keys: bytesOfHex(keys) }, sinceMs }];
    } catch {
      localStorage.removeItem(key);
      return [];
    }
  });
}

/** Brings the locked keys to the server, and forgets them. */
export async function finish(
  client: SynclineClient,
  account: string,
  { id, generation, keys: bytes }: HalfMade,
): Promise<void> {
  await putLockedKeys(client, id, { generation, bytes });
  forget(account, id);
}

/** Finishes what pages that are gone have begun; what never reached the server is forgotten. */
export async function finishAll(client: SynclineClient, account: string): Promise<void> {
  for (const { half, sinceMs } of remembered(account)) {
    try {
      await client.workspace(half.id);
      await finish(client, account, half);
    } catch (error) {
      const isUnknown = error instanceof ProblemError && error.code === 'not_found';
      const isLate = isUnknown && Date.now() - sinceMs > MAKING_MS;
      // Somebody has changed the passphrase since it was finished.
      if (isLate || error instanceof OtherKeys) forget(account, half.id);
    }
  }
}
