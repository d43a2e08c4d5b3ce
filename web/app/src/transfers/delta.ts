// Sends a new version of a file as what has changed in it. A worker finds that out, so the page does not notice.

import {
  fetchChunkList,
  fetchGenesis,
  NoConnection,
  postDelta,
  ProblemError,
  type Node,
  type SynclineClient,
} from '@syncline/api';
import type { Core } from '@syncline/core';
import { loadCore } from '../core.ts';
import type { UploadHooks, UploadJob } from './upload.ts';

/** A larger delta is not sent: it could not go on after a broken connection, and the file in pieces can. */
const DELTA_LENGTH_MAX = 64 * 1024 * 1024;

/** What a server says to a delta that the same file in pieces may do without. */
const WHOLE_INSTEAD = ['not_found', 'invalid', 'wrong_base', 'too_large', 'unverified', 'unknown'];

/** Sends a file as a delta, and returns its node; nothing where it is to be sent whole. */
export async function sendDelta(
  client: SynclineClient,
  job: UploadJob,
  hooks: UploadHooks,
  signal: AbortSignal,
): Promise<Node | null> {
  try {
    const core = await loadCore();
    return await send(core, client, job, hooks, signal);
  } catch (error) {
    signal.throwIfAborted();
    // Whatever the core cannot do, the file can be sent without it. Only a passing failure of the way there is tried again.
    const isWhole =
      error instanceof ProblemError
        ? WHOLE_INSTEAD.includes(error.code)
        : !(error instanceof NoConnection);
    if (isWhole) return null;
    throw error;
  } finally {
    hooks.onProgress(0);
  }
}

async function send(
  core: Core,
  client: SynclineClient,
  { workspace, path, file, modifiedMs, condition }: UploadJob,
  hooks: UploadHooks,
  signal: AbortSignal,
): Promise<Node | null> {
  const [genesis, base] = await Promise.all([
    fetchGenesis(client, workspace, signal),
    fetchChunkList(client, workspace, path, signal),
  ]);
  const options = { genesis, base, signal, onProgress: hooks.onProgress };
  const delta = await core.delta(file, options);
  try {
    let sent = 0;
    const post = (body: Blob) => {
      sent += body.size;
      return postDelta(client, workspace, path, body, { condition, modifiedMs, signal });
    };
    const told = delta.question && (await post(delta.question));
    const { body, length } = await delta.messages(told && 'message' in told ? told.message : null);
    if (length > Math.min(file.size / 2, DELTA_LENGTH_MAX)) return null;
    let answer = await post(body);
    if ('message' in answer) {
      const { body: wanted } = await delta.wanted(answer.message);
      answer = await post(new Blob([body, wanted], { type: body.type }));
    }
    if ('message' in answer) return null;
    hooks.onDelta?.(sent);
    return answer.node;
  } finally {
    await delta.end();
  }
}
