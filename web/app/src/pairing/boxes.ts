import {
  fetchPairingBox,
  putPairingBox,
  removePairingBox,
  type SynclineClient,
} from '@syncline/api';
import type { PairingBoxes } from '@syncline/core';
import { persistently } from '../sealed/persistently.ts';

/** The boxes of the pairings of a workspace, at its server. */
export function boxesOf(client: SynclineClient, workspace: string): PairingBoxes {
  return {
    get: (name, part, signal) =>
      persistently(() => fetchPairingBox(client, workspace, [name, part], signal), signal),
    put: (name, part, bytes, signal) =>
      persistently(() => putPairingBox(client, workspace, [name, part, bytes], signal), signal),
    remove: (name, part) => removePairingBox(client, workspace, [name, part]),
  };
}
