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

/** Deletes nodes, each only in the version that was seen; `onDone` hears of each that is deleted, for a later one may not be. */
export async function deleteAll(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
  onDone: (node: Node) => void = () => undefined,
): Promise<void> {
  for (const node of nodes) {
    await client.delete(workspace, node.path, { ifMatch: node.etag });
    onDone(node);
  }
}

/** Brings a node back as it was when it was deleted; nothing where it is not deleted any more: somebody else has brought it back, or its folder. */
export async function revive(
  client: SynclineClient,
  workspace: string,
  node: string,
): Promise<Node | null> {
  try {
    return await client.restore(workspace, node);
  } catch (error) {
    if (error instanceof ProblemError && error.code === 'taken') return null;
    throw error;
  }
}

/** Brings everything back that is still deleted; tells what was wrong first, once all was tried. */
export async function restoreAll(
  client: SynclineClient,
  workspace: string,
  remembered: readonly string[],
): Promise<void> {
  const failures: unknown[] = [];
  for (const node of remembered) {
    await revive(client, workspace, node).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}
