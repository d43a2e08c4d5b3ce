// Moving and copying nodes into another folder of the workspace, and taking it back.

import {
  joinPath,
  nameOf,
  parentOf,
  ROOT,
  type Node,
  type NodePath,
  type SynclineClient,
} from '@syncline/api';
import { freeName } from './names.ts';

export type Relocation = 'move' | 'copy';

/** A folder, by what it is called by and for people. */
export interface Place {
  id: string;
  name: string;
}

/** The folders from the top of a workspace of this name down to one. */
export function wayTo(folder: NodePath, title: string): Place[] {
  if (folder === ROOT) return [{ id: ROOT, name: title }];
  return [...wayTo(parentOf(folder), title), { id: folder, name: nameOf(folder) }];
}

/** Everything in a folder. */
export async function allIn(
  client: SynclineClient,
  workspace: string,
  folder: NodePath,
  signal: AbortSignal,
): Promise<Node[]> {
  const found: Node[] = [];
  for await (const page of client.folder(workspace, folder, signal)) found.push(...page);
  return found;
}

/** Whether a node may go into a folder: not into itself, nor below, and not where it is. */
export function fits(nodes: readonly Node[], folder: NodePath): boolean {
  return nodes.every(({ path }) => folder !== path && !folder.startsWith(`${path}/`));
}

/** The place of a node in another folder, under its own name, which may be no text. */
function sameNameIn(folder: NodePath, path: NodePath): NodePath {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return folder === ROOT ? name : `${folder}/${name}`;
}

/** A node that was moved: where it was, and what it is now. */
export interface Moved {
  from: NodePath;
  now: Node;
}

/** Moves nodes, each only in the version that was seen; what is in the way is never replaced. */
export async function moveAll(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
  folder: NodePath,
): Promise<Moved[]> {
  const moved: Moved[] = [];
  try {
    for (const { path, etag } of nodes) {
      const condition = { ifMatch: etag };
      const now = await client.move(workspace, path, sameNameIn(folder, path), condition);
      moved.push({ from: path, now });
    }
  } catch (error) {
    // All or nothing, as far as the server goes along.
    await moveBack(client, workspace, moved).catch(() => undefined);
    throw error;
  }
  return moved;
}

/** Moves back what was moved, and not what may lie there by now. */
export async function moveBack(
  client: SynclineClient,
  workspace: string,
  moved: readonly Moved[],
): Promise<void> {
  for (const { from, now } of moved.toReversed()) {
    await client.move(workspace, now.path, from, { ifMatch: now.etag });
  }
}

/** Copies nodes; beside something of that name under another one. Returns the copies. */
export async function copyAll(
  client: SynclineClient,
  workspace: string,
  nodes: readonly Node[],
  folder: NodePath,
): Promise<Node[]> {
  const isTaken = async (name: string) =>
    (await client.node(workspace, joinPath(folder, name))) !== null;
  const copies: Node[] = [];
  for (const { path: from, name } of nodes) {
    // What comes there between the question and the copy is not replaced either: then the server refuses.
    const same = sameNameIn(folder, from);
    const isFree = (await client.node(workspace, same)) === null;
    const to = isFree ? same : joinPath(folder, await freeName(name, isTaken));
    const body = { from, to, overwrite: false };
    const params = { workspace };
    copies.push(await client.call('POST /workspaces/{workspace}/copy', { params, body }));
  }
  return copies;
}
