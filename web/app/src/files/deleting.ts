// Deleting, and taking it back. A deletion keeps what was deleted, so each node can be brought back by its id: a folder first, then what was in
// it. It comes as it was when it was deleted, and what somebody else has brought back or changed meanwhile stays as it is.

import { ProblemError, type Node, type SynclineClient } from '@syncline/api';

/** More than this is not brought back one by one. */
export const UNDO_MAX = 500;

/** Lists the ids of nodes and of everything in them, folders before their content; nothing where it is too much. */
export async function remember(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
): Promise<string[] | null> {
  const found: string[] = [];
  const waiting = [...nodes];
  for (let node = waiting.shift(); node; node = waiting.shift()) {
    found.push(node.id);
    if (found.length + waiting.length > UNDO_MAX) return null;
    if (node.kind !== 'folder') continue;
    for await (const page of client.folder(workspace, node.path)) {
      waiting.push(...page);
      if (found.length + waiting.length > UNDO_MAX) return null;
    }
  }
  return found;
}

/** Whether what was to be brought back is not deleted any more. */
export const isThere = (error: unknown) => error instanceof ProblemError && error.code === 'taken';

/** Deletes nodes, each only in the version that was seen. */
export async function deleteAll(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
): Promise<void> {
  for (const { path, etag } of nodes) await client.delete(workspace, path, { ifMatch: etag });
}

/** Brings everything back that is still deleted; tells what was wrong first, once all was tried. */
export async function restoreAll(
  client: SynclineClient,
  workspace: string,
  remembered: readonly string[],
): Promise<void> {
  const failures: unknown[] = [];
  for (const node of remembered) {
    await client.restore(workspace, node).catch((error: unknown) => {
      // Or it came back with its folder, or by somebody else.
      if (!isThere(error)) failures.push(error);
    });
  }
  if (failures.length > 0) throw failures[0];
}
