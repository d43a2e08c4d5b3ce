// The folder of a workspace that one of this computer is kept equal to, whether the server can read it or not.

import type { SynclineClient } from '@syncline/api';
import { loadCore } from '../core.ts';
import { unlocked } from '../sealed/unlocked.svelte.ts';
import { SEALED_ROOT } from '../shell/route.ts';
import type { Server } from './ports.ts';
import { SealedFolder } from './sealed-folder.ts';
import type { Pair } from './store.ts';
import { WorkspaceFolder } from './workspace-folder.ts';

/** `isWanted` tells whether somebody has begun what goes on: what a timer or another device has begun is no use of the page. */
export function serverOf(client: SynclineClient, pair: Pair, isWanted: () => boolean): Server {
  const { workspace, node, isSealed } = pair;
  if (!isSealed) return new WorkspaceFolder(client, loadCore, pair);
  const onBytes = () => void (isWanted() && unlocked.use());
  return new SealedFolder(() => unlocked.open.get(workspace), node ?? SEALED_ROOT, onBytes);
}
