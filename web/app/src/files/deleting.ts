// Deleting, and taking it back. A deletion keeps the versions, so each node can be restored by its id: a folder first, then what was in it.

import type { Node, SynclineClient } from '@syncline/api';

/** More than this is not brought back one by one. */
export const UNDO_MAX = 500;

export interface Remembered {
  id: string;
  version: number;
}

/** Lists nodes and everything in them, folders before their content; nothing where it is too much. */
export async function remember(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
): Promise<Remembered[] | null> {
  const found: Remembered[] = [];
  const waiting = [...nodes];
  for (let node = waiting.shift(); node; node = waiting.shift()) {
    found.push({ id: node.id, version: node.version });
    if (found.length + waiting.length > UNDO_MAX) return null;
    if (node.kind !== 'folder') continue;
    for await (const page of client.folder(workspace, node.path)) {
      waiting.push(...page);
      if (found.length + waiting.length > UNDO_MAX) return null;
    }
  }
  return found;
}

/** Deletes nodes, each only in the version that was seen. */
export async function deleteAll(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
): Promise<void> {
  for (const { path, etag } of nodes) await client.delete(workspace, path, { ifMatch: etag });
}

/** Brings everything back. */
export async function restoreAll(
  client: SynclineClient,
  workspace: string,
  remembered: readonly Remembered[],
): Promise<void> {
  for (const { id, version } of remembered) await client.restore(workspace, id, version);
}
