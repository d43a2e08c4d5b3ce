// Sends a new version of a file as what has changed in it. A worker finds that out, so the page does not notice.

import {
  bytesOfHex,
  commitDelta,
  fetchChunkList,
  fetchGenesis,
  hexOf,
  lengthOfBody,
  postDelta,
  ProblemError,
  randomHex,
  type Condition,
  type DeltaAnswer,
  type DeltaPut,
  type Node,
  type SynclineClient,
  type Upload,
} from '@syncline/api';
import type { Core, Delta, Sendable } from '@syncline/core';
import { loadCore } from '../core.ts';
import { session as signedIn } from '../sign-in/session.svelte.ts';
import {
  askState,
  DeltaEnded,
  hasCode,
  isPassing,
  PIECE_LENGTH,
  putUpload,
  sendPieces,
} from './pieces.ts';
import {
  forgetSketch,
  keepSketch,
  OLD_LENGTH_MAX,
  signedInSince,
  sketchOf,
  type Sketch,
} from './sketches.ts';
import type { UploadHooks, UploadJob } from './upload.ts';

/** A larger delta is not sent: the server receives one whole before it works on it. */
const DELTA_LENGTH_MAX = 64 * 1024 * 1024;

/** How many bytes name an exchange. */
const SESSION_LENGTH = 16;

/**
 * For a larger new version the chunk list of the old one is learnt by questions: it may have megabytes, and the first answer has
 * 2 KB. For a shorter one it has 36 KB at most, unless the old one was longer, and comes in one turn.
 */
const LISTED_LENGTH_MAX = 16 * 1024 * 1024;

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
    const node = await send(core, client, job, hooks, signal);
    await giveUpDelta(client, job, hooks);
    return node;
  } catch (error) {
    signal.throwIfAborted();
    if (!canDoWithout(error)) throw error;
    await giveUpDelta(client, job, hooks);
    return null;
  } finally {
    hooks.onProgress(0);
  }
}

/** Whatever the core cannot do, the file can be sent without it. A passing failure is tried again, and most problems are told. */
function canDoWithout(error: unknown): boolean {
  if (isPassing(error)) return false;
  return !(error instanceof ProblemError) || WHOLE_INSTEAD.includes(error.code);
}

/** The version that is there, and what is known of it: maybe nothing yet. */
interface Old {
  genesis: Uint8Array<ArrayBuffer>;
  bytes: Sketch['bytes'] | null;
  old?: Blob | undefined;
  isKept: boolean;
}

async function send(
  core: Core,
  client: SynclineClient,
  job: UploadJob,
  hooks: UploadHooks,
  signal: AbortSignal,
): Promise<Node | null> {
  const { workspace, path, condition } = job;
  const etag = replacedBy(condition);
  const sketch = etag === null ? null : await sketchOf(workspace, etag);
  if (etag !== null && sketch?.genesis) {
    const { genesis, bytes, old } = sketch;
    try {
      const kept = { genesis, bytes, old, isKept: true };
      return await sendAgainst(core, client, job, kept, hooks, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!canDoWithout(error)) throw error;
      // The server has something else at this version, as after it was restored, or the browser has damaged what it kept.
      await forgetSketch(workspace, etag);
    }
  }
  const isListed = job.file.size <= LISTED_LENGTH_MAX;
  const [genesis, bytes] = await Promise.all([
    fetchGenesis(client, workspace, signal),
    isListed ? fetchChunkList(client, workspace, path, signal) : null,
  ]);
  return sendAgainst(core, client, job, { genesis, bytes, isKept: false }, hooks, signal);
}

/** Returns the version in whose place the new one is to be. */
function replacedBy(condition: Condition): string | null {
  return condition && 'ifMatch' in condition ? condition.ifMatch : null;
}

async function sendAgainst(
  core: Core,
  client: SynclineClient,
  job: UploadJob,
  { genesis, bytes: base, old, isKept }: Old,
  hooks: UploadHooks,
  signal: AbortSignal,
): Promise<Node | null> {
  const { workspace, path, file, modifiedMs, condition } = job;
  const session = job.delta?.session ?? randomHex(SESSION_LENGTH);
  const since = signedInSince();
  const delta = await core.delta(file, {
    ...{ genesis, base, old, isKept, session: bytesOfHex(session) },
    ...{ signal, onProgress: hooks.onProgress },
  });
  let keeping: Promise<unknown> = Promise.resolve();
  try {
    let sent = 0;
    const put = { condition, modifiedMs, signal };
    const post = (body: Sendable) => {
      const length = lengthOfBody(body);
      sent += length;
      return body instanceof Blob && length > PIECE_LENGTH
        ? postInPieces(delta, client, job, { body, session }, hooks, put)
        : postDelta(client, workspace, path, body, put);
    };
    const ask = async (question: Sendable) => {
      sent += lengthOfBody(question);
      const told = await postDelta(client, workspace, path, question, put);
      if ('message' in told) return told.message;
      throw new Error('the server answers no question');
    };
    await delta.askAll(ask, () => fetchChunkList(client, workspace, path, signal));
    const { body, length } = await delta.messages();
    if (length > Math.min(file.size / 2, DELTA_LENGTH_MAX)) return null;
    let answer = await post(body);
    if ('message' in answer) {
      const wanted = await delta.wanted(answer.message);
      answer = await post(new Blob([body, wanted.body]));
    }
    if ('message' in answer) return null;
    hooks.onDelta?.(sent);
    const kept = delta.kept().catch(() => null);
    keeping = kept;
    // The version is there, whatever becomes of what is kept of it.
    keep(kept, job, { genesis, since }, answer.node).catch(() => undefined);
    return answer.node;
  } finally {
    // Nobody waits for that, and the worker for no disk.
    void keeping.finally(() => delta.end());
  }
}

/** Keeps what the next delta needs of the version that was sent. */
async function keep(
  kept: Promise<Sketch['bytes'] | null>,
  { workspace, file, condition }: UploadJob,
  { genesis, since }: { genesis: Sketch['genesis']; since: number },
  { etag }: Node,
): Promise<void> {
  const before = replacedBy(condition);
  if (before === null) return;
  const bytes = await kept;
  // What is on its way when somebody signs out comes too late.
  if (!bytes || since !== signedInSince()) return;
  // Where a session ends with its tab nobody expects files of it on the disk.
  const old = signedIn.isKept && file.size <= OLD_LENGTH_MAX ? file.slice() : undefined;
  await keepSketch({ workspace, etag, before }, { genesis, bytes, old });
}

/**
 * Sends a long delta piece by piece. One of which the server has a part goes on where that ends, if it is the same; throws [DeltaEnded]
 * where the server does not know it any more.
 */
async function postInPieces(
  delta: Delta,
  client: SynclineClient,
  job: UploadJob,
  { body, session }: { body: Blob; session: string },
  hooks: UploadHooks,
  put: DeltaPut & { signal: AbortSignal },
): Promise<DeltaAnswer> {
  const { workspace, path } = job;
  const { signal } = put;
  const digest = hexOf(await delta.nameOf(body));
  let begun: Upload | undefined;
  if (job.delta?.digest !== digest) {
    await giveUpDelta(client, job, hooks);
    begun = await client.beginUpload(workspace, path, signal);
    job.delta = { upload: begun.id, session, digest };
    hooks.onBegun?.({ delta: job.delta });
  }
  const { upload } = job.delta;
  const onConfirmed = (offset: number) => hooks.onConfirmed?.(offset);
  const asking = () => askState(client, workspace, upload, hooks.wait, signal);
  try {
    await sendPieces(client, workspace, begun ?? (await asking()), body, onConfirmed, signal);
    const answer = await putUpload(() => commitDelta(client, workspace, upload, put), asking);
    job.delta = null;
    return answer;
  } catch (error) {
    if (!hasCode(error, 'not_found')) throw error;
    await giveUpDelta(client, job, hooks);
    throw new DeltaEnded(error);
  }
}

/** What the server has of a delta is of no use any more. */
async function giveUpDelta(
  client: SynclineClient,
  job: UploadJob,
  hooks: UploadHooks,
): Promise<void> {
  if (!job.delta) return;
  const { upload } = job.delta;
  job.delta = null;
  hooks.onBegun?.({ delta: null });
  await client.endUpload(job.workspace, upload).catch(() => undefined);
}
