// All files on their way, three at a time.

import {
  fetchArchive,
  fetchArchiveLength,
  joinPath,
  nameOf,
  parentOf,
  type Node,
  type NodePath,
} from '@syncline/api';
import { freeName } from '../files/names.ts';
import { notices } from '../shell/notices.svelte.ts';
import { session } from '../sign-in/session.svelte.ts';
import { problemText } from '../words/problem.ts';
import { t } from '../words/words.svelte.ts';
import { sendDelta } from './delta.ts';
import { archiveNameOf, download, pickTarget, type DownloadJob } from './download.ts';
import type { Chosen } from './dropped.ts';
import { FolderMaker } from './folders.ts';
import type { Found } from './matching.ts';
import { newKey } from './memory.ts';
import { Pace } from './pace.ts';
import { remembered, type Unsent } from './remembered.ts';
import { isSent } from './sent.ts';
import { forgetScratchFiles } from './scratch.ts';
import { forgetSketches } from './sketches.ts';
import { Transfer, type UploadTask } from './transfer.svelte.ts';
import { unfinished } from './unfinished.svelte.ts';
import { endUploads, NameClash, upload, type Begun, type UploadJob } from './upload.ts';
import { wait } from './wait.ts';

const AT_ONCE = 3;
/** What a file costs beside its bytes, as bytes: of a thousand small ones most. */
const FILE_COST = 64 * 1024;

function fail(error: unknown): void {
  notices.fail(problemText(error, t()));
}

class Transfers {
  list = $state<Transfer[]>([]);
  /** Bytes in a second of all together; nothing while nobody knows. */
  rate = $state<number | null>(null);
  readonly #pace = new Pace();
  /** How fast all goes together, with what each file costs beside its bytes. */
  readonly #work = new Pace();
  #moved = 0;
  #ended = 0;
  #next = 0;
  readonly #folders = new FolderMaker((workspace, folder) =>
    session.client.makeFolder(workspace, folder),
  );

  get unfinished(): number {
    return this.list.filter((transfer) => !transfer.isOver && transfer.state !== 'failed').length;
  }

  /** How many would be lost, or would have to be picked again, if the page went away now. */
  get running(): number {
    return this.list.filter((transfer) => transfer.isRunning).length;
  }

  /** How long it takes until nothing runs any more; nothing while nobody knows. */
  get secondsLeft(): number | null {
    const running = this.list.filter((transfer) => transfer.isRunning);
    if (running.length === 0 || running.some(({ size }) => size === null)) return null;
    const work = running.reduce((sum, { size, done }) => sum + (size ?? 0) - done + FILE_COST, 0);
    return this.#work.secondsFor(work);
  }

  /** Sends what somebody has chosen; folders are made, also those with nothing in them. */
  upload(workspace: string, folder: NodePath, chosen: Chosen[]): void {
    this.#folders.forget();
    const made: Transfer[] = [];
    const records: Unsent[] = [];
    for (const { file, folders, handle = null, root = null } of chosen) {
      const paths: NodePath[] = [];
      for (const name of folders) paths.push(joinPath(paths.at(-1) ?? folder, name));
      if (!file) {
        this.#folders.make(workspace, paths).catch(fail);
        continue;
      }
      const path = joinPath(paths.at(-1) ?? folder, file.name);
      const record = {
        ...{ workspace, path, folders: paths, handle, root },
        ...{ upload: null, delta: null, isPaused: false },
        ...{ key: newKey(), account: session.account ?? '' },
        condition: { ifAbsent: true } as const,
        ...{ name: file.name, size: file.size, modifiedMs: file.lastModified },
      };
      // What is dropped again goes on where it was.
      const before = unfinished.claim(record);
      records.push(before ?? record);
      made.push(this.#make(before ?? record, file));
    }
    void remembered.remember(records);
    this.list.push(...made);
    this.#fill();
  }

  /** Goes on with what was on its way when the page went away. */
  takeUpAll(found: readonly Found[]): void {
    const made = found.map(({ record, file }) => {
      const transfer = this.#make(record, file);
      if (record.isPaused) transfer.state = 'paused';
      return transfer;
    });
    void remembered.remember(found.map(({ record }) => record));
    this.list.push(...made);
    this.#fill();
  }

  #make({ folders, key, ...record }: Unsent, file: File): Transfer {
    const { workspace, path, modifiedMs, condition, upload: begun, delta = null } = record;
    const up: UploadJob = { workspace, path, file, modifiedMs, condition, upload: begun, delta };
    return new Transfer(this.#next++, file.size, { up, folders, key });
  }

  /** Begins a download of a file, or of an older version of it. */
  download(workspace: string, node: Node, version?: number, size = node.size): Promise<void> {
    const read: DownloadJob['read'] = (signal, from) =>
      session.client.file(workspace, node.path, { version, signal, from });
    return this.save(node.name, size ?? 0, read, true);
  }

  /** Begins a download of a folder with everything in it, as a ZIP file. */
  async archive(workspace: string, folder: NodePath, name: string): Promise<void> {
    const size = await fetchArchiveLength(session.client, workspace, folder);
    const read = (signal: AbortSignal) => fetchArchive(session.client, workspace, folder, signal);
    await this.save(archiveNameOf(name), size, read);
  }

  /** Begins to save what is read; nothing happens where somebody gives up choosing a place. */
  async save(
    name: string,
    size: number | null,
    read: DownloadJob['read'],
    isResumable = false,
  ): Promise<void> {
    let target;
    try {
      target = await pickTarget(name, size);
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') return;
      throw error;
    }
    const down = { name, read, target, isResumable };
    this.list.push(new Transfer(this.#next++, size, { down }));
    this.#fill();
  }

  cancel(transfer: Transfer): void {
    transfer.halt('cancelled');
    void transfer.discard();
    const { job } = transfer;
    if ('up' in job) {
      void remembered.forget([job.key]);
      void endUploads(session.client, job.up);
    }
    this.#fill();
  }

  /** Stops for a while: what has come there stays there. */
  pause(transfer: Transfer): void {
    if (!transfer.isRunning || !transfer.isPausable) return;
    transfer.halt('paused');
    if ('up' in transfer.job) void remembered.amend(transfer.job.key, { isPaused: true });
    this.#fill();
  }

  /** Goes on with what failed, was paused, or is decided now. */
  retry(transfer: Transfer): void {
    transfer.halt('waiting');
    transfer.failure = undefined;
    if ('up' in transfer.job) {
      const { path, condition, upload: id, delta } = transfer.job.up;
      const now = { path, condition, upload: id, delta };
      void remembered.amend(transfer.job.key, { isPaused: false, ...now });
    }
    this.#fill();
  }

  /** Puts a file over the one that is there, which stays as an older version; where that is gone meanwhile, over nothing. */
  replace(transfer: Transfer): void {
    if (!('up' in transfer.job)) return;
    transfer.job.up.condition =
      transfer.etag === null ? { ifAbsent: true } : { ifMatch: transfer.etag };
    this.retry(transfer);
  }

  /** Puts a file beside the one that is there, under another name. */
  async keepBoth(transfer: Transfer): Promise<void> {
    if (!('up' in transfer.job)) return;
    const { up } = transfer.job;
    const folder = parentOf(up.path);
    const isTaken = async (name: string) =>
      (await session.client.node(up.workspace, joinPath(folder, name))) !== null;
    try {
      transfer.name = await freeName(nameOf(up.path), isTaken);
      up.path = joinPath(folder, transfer.name);
      up.condition = { ifAbsent: true };
      void endUploads(session.client, up);
      up.upload = up.delta = null;
      this.retry(transfer);
    } catch (error) {
      transfer.failure = error;
      transfer.state = 'failed';
    }
  }

  clear(): void {
    this.list = this.list.filter((transfer) => !transfer.isOver);
  }

  /** Ends all, and begins nothing of it: for good where somebody signs out; else it is remembered until the same person is back. */
  end(account: string | null): void {
    const all = this.list.splice(0);
    for (const transfer of all) {
      if (account !== null && !transfer.isOver) this.cancel(transfer);
      else transfer.stop.abort();
    }
    void forgetScratchFiles(all.map((transfer) => transfer.discard()));
    if (account !== null) void remembered.forgetAll(account);
    void forgetSketches();
  }

  #fill(): void {
    let running = this.list.filter((transfer) => transfer.state === 'sending').length;
    if (this.running === 0) this.#rest();
    for (const transfer of this.list) {
      if (running >= AT_ONCE) return;
      if (transfer.state !== 'waiting') continue;
      running++;
      transfer.state = 'sending';
      void this.#run(transfer).finally(() => this.#fill());
    }
  }

  #rest(): void {
    this.#pace.rest();
    this.#work.rest();
    [this.rate, this.#moved, this.#ended] = [null, 0, 0];
  }

  async #run(transfer: Transfer): Promise<void> {
    const { signal } = transfer.stop;
    try {
      if ('up' in transfer.job) await this.#send(transfer, transfer.job);
      else await this.#fetch(transfer, transfer.job.down);
      if (signal.aborted && transfer.isOver) return;
      transfer.size ??= transfer.done;
      this.#note(transfer, transfer.size);
      transfer.halt('done');
      if ('up' in transfer.job) void remembered.forget([transfer.job.key]);
    } catch (error) {
      if (signal.aborted) return;
      transfer.isConnected = true;
      transfer.failure = error;
      if (error instanceof NameClash) transfer.etag = error.etag;
      transfer.halt(error instanceof NameClash ? 'clash' : 'failed');
    }
  }

  #note(transfer: Transfer, done: number): void {
    this.#moved += Math.max(0, done - transfer.done);
    if (done === transfer.size) this.#ended += FILE_COST;
    this.#pace.note(this.#moved, performance.now());
    this.#work.note(this.#moved + this.#ended, performance.now());
    this.rate = this.#pace.rate;
    transfer.progress(done);
  }

  async #send(transfer: Transfer, { up, folders, key }: UploadTask): Promise<void> {
    const { signal } = transfer.stop;
    await this.#folders.make(up.workspace, folders);
    // What is heard after a pause is not about what goes on then.
    const isCurrent = () => !signal.aborted;
    const onProgress = (sent: number) => isCurrent() && this.#note(transfer, sent);
    const onConnection = (isBack: boolean) => (transfer.isConnected = isBack || !isCurrent());
    const onDelta = (sent: number) => (transfer.sent = sent);
    const onBegun = (begun: Begun) => void remembered.amend(key, begun);
    const hooks = { onProgress, onConnection, onDelta, onBegun, wait, sendDelta, isSent };
    await upload(session.client, up, hooks, signal);
  }

  #fetch(transfer: Transfer, job: DownloadJob): Promise<void> {
    const onProgress = (received: number) => this.#note(transfer, received);
    const onSize = (size: number) => (transfer.size = size);
    const hooks = { onProgress, onSize, onGathered: () => (transfer.isGathered = true) };
    return download(job, hooks, transfer.stop.signal);
  }
}

export const transfers = new Transfers();

// What is running stands still without the page.
addEventListener('beforeunload', (event) => {
  if (transfers.running > 0) event.preventDefault();
});
