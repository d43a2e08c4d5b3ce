// Whether what is at a path is what was sent there just now: where a connection breaks before the answer, a browser sends the request again
// by itself, says nothing of it, and hears that something is there.

import {
  fetchGenesis,
  NoConnection,
  ProblemError,
  type Node,
  type SynclineClient,
} from '@syncline/api';
import { loadCore } from '../core.ts';
import { fetchTable, hasContent, secretOf } from './content.ts';
import type { UploadJob } from './upload.ts';

/** Whether a node has the content and the time of a file that was sent to it. Whatever cannot be compared is something else. */
export async function isSent(
  client: SynclineClient,
  { workspace, path, file, modifiedMs }: UploadJob,
  node: Node,
  signal: AbortSignal,
): Promise<boolean> {
  if (node.size !== file.size || node.modified !== Math.floor(modifiedMs / 1000)) return false;
  try {
    const table = await fetchTable(client, workspace, path, node.etag, signal);
    if (!table) return false;
    const secret = secretOf(await fetchGenesis(client, workspace, signal));
    return await hasContent(await loadCore(), file, table, secret, signal);
  } catch (error) {
    signal.throwIfAborted();
    const isPassing = error instanceof ProblemError && error.isPassing;
    if (isPassing || error instanceof NoConnection) throw error;
    return false;
  }
}
