// What was deleted in an encrypted workspace that is open, kept up to date by the events of the server.

import type { DeletedNode, SynclineClient } from '@syncline/api';
import type { SealedDeleted, SealedWorkspace } from '@syncline/core';
import { followLog } from './following.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { pathOf } from './view.svelte.ts';

/** Says what was deleted as the lists of the app know it. */
export function deletedOf(found: SealedDeleted): DeletedNode {
  const { node, folders, seq, timeMs, device, deviceName, isInDeleted } = found;
  return {
    device_id: device,
    device_name: deviceName,
    id: node.id,
    is_in_deleted: isInDeleted,
    kind: node.kind,
    last_version: node.version - 1,
    mode: null,
    modified: node.kind === 'folder' ? null : node.modifiedMs / 1000,
    modified_ns: null,
    name: node.name,
    path: pathOf(folders, node.name),
    seq,
    size: node.size,
    target: null,
    time: Math.floor(timeMs / 1000),
    version: node.version,
  };
}

export class SealedTrash {
  list = $state.raw<DeletedNode[]>([]);
  /** The ids of those whose contents a cleanup has removed. */
  dropped = $state.raw<ReadonlySet<string>>(new Set());
  isRead = $state(false);
  mayWrite = $state(false);
  failure = $state.raw<unknown>();

  /** Reads on in the log, and the list again, once at a time; returns when all is seen that was there when it was called. */
  readonly refresh: () => Promise<void> = oneAtATime(() => this.#read());

  constructor(readonly open: SealedWorkspace) {}

  async #read(): Promise<void> {
    try {
      await this.open.catchUp();
      const found = await this.open.deleted();
      this.list = found.map(deletedOf);
      const dropped = found.filter(({ isDropped }) => isDropped);
      this.dropped = new Set(dropped.map(({ node }) => node.id));
      this.mayWrite = this.open.mayWrite;
      this.isRead = true;
      this.failure = undefined;
    } catch (error) {
      if (!this.open.isLocked) this.failure = error;
    }
  }

  /** Reads on whenever the server says that there is something, until the signal says stop. */
  follow(client: SynclineClient, workspace: string, signal: AbortSignal): Promise<void> {
    return followLog(this, client, workspace, signal);
  }
}
