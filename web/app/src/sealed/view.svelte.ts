// A folder of an encrypted workspace that is open, kept up to date by the events of the server.

import { joinPath, ROOT, type Node, type NodePath, type SynclineClient } from '@syncline/api';
import type { SealedNode, SealedShown, SealedWorkspace } from '@syncline/core';
import { followLog } from './following.ts';
import { oneAtATime } from './one-at-a-time.ts';

/** The path of something by its name and those of the folders above it, for whoever is told where it lies; no address has it. */
export function pathOf(folders: readonly string[], name: string): NodePath {
  return [...folders, name].reduce<NodePath>((path, name) => joinPath(path, name), ROOT);
}

/** Says a node as the lists of the app know nodes; its address is its id, so that no name stands in the history of the browser. */
export function listedOf(node: SealedNode): Node {
  return {
    etag: '',
    id: node.id,
    is_conflict: node.isConflict,
    mounted: null,
    kind: node.kind,
    mode: null,
    // Of folders devices keep no time.
    modified: node.kind === 'folder' ? null : node.modifiedMs / 1000,
    modified_ns: null,
    name: node.name,
    path: node.id,
    size: node.size,
    target: null,
    version: node.version,
  };
}

export class SealedFolder {
  nodes = $state.raw<Node[]>([]);
  /** The folders from the top down to this one. */
  way = $state.raw<Node[]>([]);
  shown = $state.raw<SealedShown>();
  /** How many conflicts wait for a decision in all of the workspace. */
  conflicts = $state(0);
  isComplete = $state(false);
  /** Whether what is changed here counts. */
  mayWrite = $state(false);
  /** How many entries were checked, while they are. */
  checked = $state(0);
  failure = $state.raw<unknown>();
  #folder = '';
  #read = oneAtATime(() => this.#readFolder(''));

  constructor(readonly open: SealedWorkspace) {}

  /** Shows another folder. */
  async show(folder: string): Promise<void> {
    this.#folder = folder;
    this.failure = undefined;
    // It does not wait for the one that was shown before.
    this.#read = oneAtATime(() => this.#readFolder(folder));
    await this.refresh();
  }

  /** Reads on in the log, and the folder again, once at a time; returns when all is seen that was there when it was called. */
  refresh(): Promise<void> {
    return this.#read();
  }

  async #readFolder(folder: string): Promise<void> {
    try {
      await this.open.catchUp((head) => (this.checked = head));
      if (folder !== this.#folder) return;
      const [nodes, way, shown, { count }] = [
        await this.open.list(folder),
        await this.open.way(folder),
        await this.open.shown(),
        await this.open.conflicts(null, 1),
      ];
      if (folder !== this.#folder) return;
      this.nodes = nodes.map(listedOf);
      this.way = way.map(listedOf);
      this.shown = shown;
      this.conflicts = count;
      this.mayWrite = this.open.mayWrite;
      this.isComplete = true;
      this.failure = undefined;
    } catch (error) {
      if (this.open.isLocked || folder !== this.#folder) return;
      this.failure = error;
    }
  }

  /** Reads on whenever the server says that there is something, until the signal says stop. */
  follow(client: SynclineClient, workspace: string, signal: AbortSignal): Promise<void> {
    return followLog(this, client, workspace, signal);
  }
}
