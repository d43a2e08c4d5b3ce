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
import { digest, digestInTurn } from './digest.ts';
import { archiveNameOf, download, pickTarget, type DownloadJob } from './download.ts';
import type { Chosen } from './dropped.ts';
import { FolderMaker } from './folders.ts';
import type { Found } from './matching.ts';
import { remembered, unsentOf, type Unsent } from './remembered.ts';
import { isSent } from './sent.ts';
import { forgetScratchFiles } from './scratch.ts';
import { forgetSketches } from './sketches.ts';
import { Speed } from './speed.svelte.ts';
import { Transfer, type UploadTask } from './transfer.svelte.ts';
import { unfinished } from './unfinished.svelte.ts';
import { endUploads, NameClash, upload, type Begun, type UploadJob } from './upload.ts';
import { wait } from './wait.ts';

const AT_ONCE = 3;

function fail(error: unknown): void {
  notices.fail(problemText(error, t()));
}

class Transfers {
  list = $state<Transfer[]>([]);
  readonly speed = new Speed();
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
    return this.speed.secondsFor(this.list.filter((transfer) => transfer.isRunning));
  }

  /** Sends what somebody has chosen; folders are made, also those with nothing in them. */
  upload(workspace: string, folder: NodePath, chosen: Chosen[]): void {
    this.#folders.forget();
    const made: Transfer[] = [];
    const records: Unsent[] = [];
    for (const { file, folders, ...from } of chosen) {
      const paths: NodePath[] = [];
      for (const name of folders) paths.push(joinPath(paths.at(-1) ?? folder, name));
      if (!file) {
        this.#folders.make(workspace, paths).catch(fail);
        continue;
      }
      const path = joinPath(paths.at(-1) ?? folder, file.name);
      const place = { workspace, path, folders: paths };
      const record = unsentOf(session.account ?? '', place, file, from);
      // What is dropped again goes on where it was.
      const before = unfinished.claim(record);
      records.push(before ?? record);
      made.push(this.#make(before ?? record, file));
    }
    this.#add(records, made);
  }

  /** Goes on with what was on its way when the page went away. */
  takeUpAll(found: readonly Found[]): void {
    const made = found.map(({ record, file }) => this.#make(record, file));
    this.#add(
      found.map(({ record }) => record),
      made,
    );
  }

  #add(records: Unsent[], made: readonly Transfer[]): void {
    void remembered.remember(records);
    this.list = this.list.concat(made);
    this.#fill();
  }

  #make({ folders, key, isPaused, ...record }: Unsent, file: File): Transfer {
    const { workspace, path, modifiedMs, condition, upload, digest = null, delta = null } = record;
    const begun = { upload, digest, delta };
    const up: UploadJob = { workspace, path, file, modifiedMs, condition, ...begun };
    const made = new Transfer(this.#next++, file.size, { up, folders, key });
    if (isPaused) made.state = 'paused';
    return made;
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
      const { path, condition, upload: id, digest = null, delta } = transfer.job.up;
      const now = { path, condition, upload: id, digest, delta };
      void remembered.amend(transfer.job.key, { isPaused: false, ...now });
      // Somebody may have deleted them meanwhile.
      this.#folders.forget();
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
      const name = await freeName(nameOf(up.path), isTaken);
      // Somebody has decided otherwise meanwhile.
      if (transfer.state !== 'clash') return;
      transfer.name = name;
      up.path = joinPath(folder, transfer.name);
      up.condition = { ifAbsent: true };
      void endUploads(session.client, up);
      up.upload = up.delta = null;
      this.retry(transfer);
    } catch (error) {
      if (transfer.state !== 'clash') return;
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
    if (this.running === 0) this.speed.rest();
    for (const transfer of this.list) {
      if (running >= AT_ONCE) return;
      if (transfer.state !== 'waiting') continue;
      running++;
      transfer.state = 'sending';
      void this.#run(transfer).finally(() => this.#fill());
    }
  }

  async #run(transfer: Transfer): Promise<void> {
    const { signal } = transfer.stop;
    try {
      if ('up' in transfer.job) await this.#send(transfer, transfer.job);
      else await this.#fetch(transfer, transfer.job.down);
      if (signal.aborted && transfer.isOver) return;
      transfer.size ??= transfer.done;
      this.speed.note(transfer, transfer.size);
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

  async #send(transfer: Transfer, { up, folders, key }: UploadTask): Promise<void> {
    const { signal } = transfer.stop;
    const prepare = () => this.#folders.make(up.workspace, folders);
    // What is heard after a pause is not about what goes on then.
    const isCurrent = () => !signal.aborted;
    const onProgress = (sent: number) => isCurrent() && this.speed.note(transfer, sent);
    const onConnection = (isBack: boolean) => (transfer.isConnected = isBack || !isCurrent());
    const onDelta = (sent: number) => (transfer.sent = sent);
    const onBegun = (begun: Begun) => void remembered.amend(key, begun);
    const heard = { onProgress, onConnection, onDelta, onBegun };
    const digests = { digest, digestLater: digestInTurn };
    const hooks = { ...heard, ...digests, prepare, wait, sendDelta, isSent };
    await upload(session.client, up, hooks, signal);
  }

  #fetch(transfer: Transfer, job: DownloadJob): Promise<void> {
    const onProgress = (received: number) => this.speed.note(transfer, received);
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
