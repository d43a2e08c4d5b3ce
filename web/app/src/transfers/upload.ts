// One file on its way to the server. A small one goes in one request; a larger one in pieces, and after a broken connection from where the
// server has it. Nothing that is there is replaced unless the job says what.

import {
  NoConnection,
  ProblemError,
  type Condition,
  type Node,
  type NodePath,
  type SynclineClient,
  type Upload,
} from '@syncline/api';
import { FileChanged, isAsChosen, readWhole } from './as-chosen.ts';
import { askState, DeltaEnded, hasCode, isPassing, putUpload, sendPieces } from './pieces.ts';

export const WHOLE_LENGTH_MAX = 1024 * 1024;
const FAILURES_MAX = 6;

/** How often a delta of one file may have ended at the server before somebody is told. */
const ENDS_MAX = 3;

export interface UploadJob {
  workspace: string;
  path: NodePath;
  file: Blob;
  modifiedMs: number;
  condition: Condition;
  /** The upload that the server knows, kept so that a retry goes on with it. */
  upload: string | null;
  /** What the file was when that began; nothing while it is not known. */
  digest?: string | null;
  /** Whether it has begun with this very file in this page: it counts while nobody knows yet what the file is. */
  isBegunHere?: boolean;
  /** The same of a delta. */
  delta: BegunDelta | null;
}

/** A delta of which the server has a part. What was sent of one is never taken for a part of a file. */
export interface BegunDelta {
  upload: string;
  /** Name and secret of the exchange: with the same one, and the same to begin with, the same messages are made again. */
  session: string;
  /** What the messages are, so that others do not go on behind them. */
  digest: string;
}

export type Begun = Pick<UploadJob, 'upload' | 'digest'> | Pick<UploadJob, 'delta'>;

export interface UploadHooks {
  onProgress: (sent: number) => void;
  onConnection: (isBack: boolean) => void;
  /** Hears what the server calls the upload, or the delta, once it has begun, and that a delta is over. */
  onBegun?: (begun: Begun) => void;
  /** Hears how much the server has confirmed of a delta. */
  onConfirmed?: (offset: number) => void;
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Says whether what is there is what the job has sent: an answer may have been lost, and the browser have asked again by itself. */
  isSent: (
    client: SynclineClient,
    job: UploadJob,
    node: Node,
    signal: AbortSignal,
  ) => Promise<boolean>;
  /** Folders that have to be there before. */
  prepare?: () => Promise<void>;
  /** What a content is, as a text that is equal for equal ones. */
  digest?: (file: Blob, signal: AbortSignal) => Promise<string>;
  /** The same, for which nobody waits. */
  digestLater?: (file: Blob, signal: AbortSignal) => Promise<string>;
  /** Sends a file as what has changed in it; nothing comes back where it is to be sent whole. */
  sendDelta?: (
    client: SynclineClient,
    job: UploadJob,
    hooks: UploadHooks,
    signal: AbortSignal,
  ) => Promise<Node | null>;
  /** Hears how many bytes went over the wire for a file of which only what has changed was sent. */
  onDelta?: (sent: number) => void;
}

/** Something is at the path that the job was not to replace. */
export class NameClash extends Error {
  override readonly name = 'NameClash';

  constructor(readonly etag: string | null) {
    super('something of this name is there already');
  }
}

/** Gives up what the server has of a file. */
export async function endUploads(
  client: SynclineClient,
  { workspace, upload, delta }: Pick<UploadJob, 'workspace' | 'upload' | 'delta'>,
): Promise<void> {
  for (const id of [upload, delta?.upload]) {
    if (id) await client.endUpload(workspace, id).catch(() => undefined);
  }
}

/** Uploads a file and returns its node; throws [NameClash] where somebody has to decide, [FileChanged]. */
export async function upload(
  client: SynclineClient,
  job: UploadJob,
  hooks: UploadHooks,
  signal: AbortSignal,
): Promise<Node> {
  const attempt = new Attempt(client, job, hooks, signal);
  for (let failures = 1; ; failures++) {
    const before = attempt.sent;
    try {
      const node = await attempt.run();
      hooks.onProgress(job.file.size);
      return node;
    } catch (error) {
      if (attempt.sent > before) failures = 1;
      if (attempt.doubts(error, failures < FAILURES_MAX)) continue;
      // To a request it is as if there were no connection.
      if (error instanceof NoConnection && !(await isAsChosen(job.file))) throw new FileChanged();
      if (!isPassing(error) || failures >= FAILURES_MAX) throw error;
      hooks.onConnection(false);
      const after = error instanceof ProblemError ? (error.retryAfter ?? 0) * 1000 : 0;
      await hooks.wait(Math.max(after, 500 * 2 ** failures), signal);
      signal.throwIfAborted();
      hooks.onConnection(true);
    }
  }
}

class Attempt {
  /** How much the server has confirmed. */
  sent = 0;
  #isWhole = false;
  /** Whether what the server has of it is of this file: it has begun since this did, or was looked at. */
  #isOfFile = false;
  #ends = 0;
  /** Why what was sent may lie there already: that is looked at before anything is sent. */
  #doubt: ProblemError | null = null;

  constructor(
    readonly client: SynclineClient,
    readonly job: UploadJob,
    readonly hooks: UploadHooks,
    readonly signal: AbortSignal,
  ) {}

  /** Whether an error may have come because all was put and the answer was lost. */
  doubts(error: unknown, mayBeginAnew: boolean): boolean {
    // The server does not know the upload any more: it has ended, or was put.
    if (error instanceof DeltaEnded && this.#ends++ < ENDS_MAX) {
      this.#doubt = error.problem;
      return true;
    }
    const isUnknown = mayBeginAnew && hasCode(error, 'not_found') && this.job.upload !== null;
    if (!isUnknown && !hasCode(error, 'precondition_failed')) return false;
    this.#doubt = error;
    return true;
  }

  async run(): Promise<Node> {
    await this.hooks.prepare?.();
    return (await this.#settleDoubt()) ?? this.#send();
  }

  /** Returns what lies there, if it was sent. */
  async #settleDoubt(): Promise<Node | null> {
    const doubt = this.#doubt;
    if (doubt === null) return null;
    const found = await this.#found();
    this.#doubt = null;
    if (found) {
      void endUploads(this.client, this.job);
      return found;
    }
    if (hasCode(doubt, 'precondition_failed')) throw new NameClash(doubt.etag);
    this.job.upload = null;
    return null;
  }

  async #send(): Promise<Node> {
    const { client, job, signal } = this;
    const { workspace, path, file, condition, modifiedMs } = job;
    if (file.size > WHOLE_LENGTH_MAX) return this.#large();
    const whole = await readWhole(file);
    return client.putFile(workspace, path, whole, { condition, modifiedMs, signal });
  }

  /** A file that takes the place of another one is mostly the same: only what has changed is sent, where that is less. */
  async #large(): Promise<Node> {
    const { client, job, hooks, signal } = this;
    const isReplacing = job.condition !== undefined && 'ifMatch' in job.condition;
    if (hooks.sendDelta && isReplacing && job.upload === null && !this.#isWhole) {
      const onConfirmed = (offset: number) => (this.sent = offset);
      const node = await hooks.sendDelta(client, job, { ...hooks, onConfirmed }, signal);
      if (node) return node;
      this.#isWhole = true;
    }
    return this.#inPieces();
  }

  async #inPieces(): Promise<Node> {
    const { client, job, signal } = this;
    const { workspace, file, condition, modifiedMs } = job;
    if (job.upload !== null && !(await this.#isOfThisFile())) {
      this.#giveUp();
      // It may have been put, and the answer lost.
      const found = await this.#found();
      if (found) return found;
    }
    const begun = await this.#begun();
    await sendPieces(client, workspace, begun, file, (offset) => this.#confirm(offset), signal);
    // What was saved since the last piece was opened may be in a part of it.
    if (!(await isAsChosen(file))) throw this.#changed();
    const put = { condition, modifiedMs, signal };
    const asking = () => askState(client, workspace, begun.id, this.hooks.wait, signal);
    const node = await putUpload(() => client.commitUpload(workspace, begun.id, put), asking);
    job.upload = null;
    return node;
  }

  /** The upload as the server has it; a new one where there is none. */
  async #begun(): Promise<Upload> {
    const { client, job, signal } = this;
    const { workspace, path } = job;
    if (job.upload !== null)
      return askState(client, workspace, job.upload, this.hooks.wait, signal);
    await this.#checkAbsent();
    const begun = await client.beginUpload(workspace, path, signal);
    [job.upload, job.digest, job.isBegunHere, this.#isOfFile] = [begun.id, null, true, true];
    this.hooks.onBegun?.({ upload: begun.id, digest: null });
    this.#noteDigest(begun.id);
    return begun;
  }

  /** Another content may have the same length and time: an image of a disk, or what was built twice. */
  async #isOfThisFile(): Promise<boolean> {
    const { job, hooks, signal } = this;
    if (this.#isOfFile) return true;
    const { digest, isBegunHere = false } = job;
    this.#isOfFile = digest ? (await hooks.digest?.(job.file, signal)) === digest : isBegunHere;
    return this.#isOfFile;
  }

  /** Finds out meanwhile what the file is: who goes on with it another time has to know. */
  #noteDigest(upload: string): void {
    const { job, hooks, signal } = this;
    const note = (digest: string) => {
      if (job.upload !== upload) return;
      job.digest = digest;
      hooks.onBegun?.({ upload, digest });
    };
    hooks.digestLater?.(job.file, signal).then(note, () => undefined);
  }

  #giveUp(): void {
    void endUploads(this.client, { ...this.job, delta: null });
    this.job.upload = null;
  }

  /** What came of it may be half of one and half of another. */
  #changed(): FileChanged {
    this.#giveUp();
    return new FileChanged();
  }

  #confirm(offset: number): void {
    this.sent = offset;
    this.hooks.onProgress(offset);
  }

  /** Asks before a long way whether it would be in vain. */
  async #checkAbsent(): Promise<void> {
    const { client, job, signal } = this;
    if (!job.condition || !('ifAbsent' in job.condition)) return;
    const node = await client.node(job.workspace, job.path, signal);
    if (node) throw new NameClash(node.etag);
  }

  /** Returns the node that is there now, if it is what was sent. */
  async #found(): Promise<Node | null> {
    const { client, job, hooks, signal } = this;
    const node = await client.node(job.workspace, job.path, signal);
    return node && (await hooks.isSent(client, job, node, signal)) ? node : null;
  }
}
