// What was deleted, as people see it, and how it comes back.

import type { DeletedNode, Node, SynclineClient } from '@syncline/api';
import { revive } from '../files/deleting.ts';

type Place = Pick<DeletedNode, 'path' | 'seq' | 'kind'>;

/** A key for what was deleted in one go; nothing where the server does not know when that was. */
function keyOf(seq: number | null, path: string): string | null {
  return seq === null ? null : `${seq} ${path}`;
}

/** Whether a node was deleted together with a folder above it, among those that are known. */
function wentWith(node: Place, folders: ReadonlySet<string | null>): boolean {
  if (node.seq === null) return false;
  for (let at = node.path.lastIndexOf('/'); at > 0; at = node.path.lastIndexOf('/', at - 1)) {
    if (folders.has(keyOf(node.seq, node.path.slice(0, at)))) return true;
  }
  return false;
}

function foldersOf(nodes: readonly Place[]): Set<string | null> {
  const folders = nodes.filter(({ kind }) => kind === 'folder');
  return new Set(folders.map(({ seq, path }) => keyOf(seq, path)));
}

/** Leaves out what comes back with a folder. */
export function topOf<One extends Place>(nodes: readonly One[]): One[] {
  const folders = foldersOf(nodes);
  return nodes.filter((node) => !wentWith(node, folders));
}

/** The newest first; what was deleted in one go by its place. */
export function sortDeleted<One extends Place>(nodes: readonly One[]): One[] {
  return nodes.toSorted(
    (a, b) => (b.seq ?? 0) - (a.seq ?? 0) || (a.path < b.path ? -1 : Number(a.path > b.path)),
  );
}

/**
 * Brings nodes back, each with what was deleted with it, a folder before what was in it: a folder that has come back with its content
 * could not be asked for again. `done` hears where each is now, also where a later one fails.
 */
export async function bringBack(
  client: SynclineClient,
  workspace: string,
  nodes: readonly DeletedNode[],
  done: (node: Node) => void,
): Promise<void> {
  const depth = ({ path }: DeletedNode) => path.split('/').length;
  for (const { id } of topOf(nodes).toSorted((a, b) => depth(a) - depth(b))) {
    const node = await revive(client, workspace, id);
    if (node) done(node);
  }
}
