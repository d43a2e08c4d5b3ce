// The versions of a file as the pane shows them, wherever they come from.

import type { FileAnswer, Node, SynclineClient, Version } from '@syncline/api';
import { transfers } from '../transfers/transfers.svelte.ts';

/** A version of a file. */
export interface Listed {
  version: number;
  /** The entry of the log that brought it. */
  seq: number;
  /** When that was, in seconds since 1970. */
  time: number;
  device: string;
  /** Its length in bytes. */
  size: number | null;
  isDeleted: boolean;
  /** Whether a cleanup has removed its content. */
  isDropped: boolean;
}

/** Where the versions of a file come from, and what becomes of one. */
export interface VersionsOf {
  /** Some of them, the newest first, behind the `next` of an answer before. */
  list(
    after: number | null,
    signal: AbortSignal,
  ): Promise<{ versions: Listed[]; next: number | null }>;
  read(version: Listed, signal: AbortSignal): Promise<FileAnswer>;
  save(version: Listed): Promise<void>;
  restore(version: Listed): Promise<void>;
}

function listedOf({ version, seq, time, device_name, size, is_deleted }: Version): Listed {
  const isDeleted = is_deleted;
  return {
    version,
    seq,
    time,
    device: device_name,
    size: size ?? null,
    isDeleted,
    isDropped: false,
  };
}

/** Those of a file that the server can read. */
export function versionsOf(client: SynclineClient, workspace: string, node: Node): VersionsOf {
  return {
    async list(_after, signal) {
      const { versions } = await client.versions(workspace, node.path, signal);
      return { versions: versions.toReversed().map(listedOf), next: null };
    },
    read: ({ version }, signal) => client.file(workspace, node.path, { version, signal }),
    save: ({ version, size }) => transfers.download(workspace, node, version, size ?? 0),
    async restore({ version }) {
      await client.restore(workspace, node.id, version);
    },
  };
}
