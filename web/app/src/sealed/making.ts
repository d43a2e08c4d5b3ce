// Makes an encrypted workspace: its keys here, the workspace at the server, its locked keys there, and open it is. Whatever fails of that may
// be done again: it is the same workspace.

import { createSealed, type SynclineClient } from '@syncline/api';
import { SealedMaking } from '@syncline/core';
import { finish, remember } from './half-made.ts';
import { persistently } from './persistently.ts';
import { seenOf } from './seen.ts';
import { sourceOf, unlocked } from './unlocked.svelte.ts';

/** Makes the keys of a workspace. */
export function makeKeys(name: string, passphrase: string): Promise<SealedMaking> {
  return SealedMaking.make({ name, passphrase });
}

/**
 * Brings a workspace to the server and opens it here, with its recovery key in front; returns its id. Where whoever makes it signs out
 * meanwhile, nothing more is sent, its keys are overwritten, and it throws `locked`: nothing of it is for who signs in next.
 */
export async function found(client: SynclineClient, making: SealedMaking): Promise<string> {
  const { signal } = unlocked;
  // What is sent again would go with the token of whoever is signed in then.
  const send = async <T>(request: () => Promise<T>): Promise<T> => {
    const answer = await persistently(request, signal);
    signal.throwIfAborted();
    return answer;
  };
  const { id, genesis, generation, keys, recoveryKey } = making.made;
  try {
    const { device_id, device_name, account } = await send(() => client.whoAmI());
    const half = { id, generation, keys };
    remember(account, half);
    await send(() => createSealed(client, genesis));
    await send(() => finish(client, account, half));
    const device = { id: device_id, name: device_name };
    const source = sourceOf(client, id);
    const workspace = await making.open({ device, source, seen: seenOf(id) });
    unlocked.take(id, workspace, { signal, recoveryKey });
    return id;
  } catch (error) {
    if (signal.aborted) await making.leave();
    signal.throwIfAborted();
    throw error;
  }
}
