// All files on their way, three at a time.

import {
  fetchArchive,
  fetchArchiveLength,
  joinPath,
  nameOf,
  parentOf,
  ProblemError,
  type Node,
  type NodePath,
} from '@syncline/api';
import { freeName } from '../files/names.ts';
import { session } from '../sign-in/session.svelte.ts';
import { sendDelta } from './delta.ts';
import { download, pickTarget, type DownloadJob } from './download.ts';
import { NameClash, upload, type UploadJob } from './upload.ts';
import { wait } from './wait.ts';

const AT_ONCE = 3;

export type TransferState = 'waiting' | 'sending' | 'clash' | 'failed' | 'done' | 'cancelled';

/** A file on its way. */
export class Transfer {
  state = $state<TransferState>('waiting');
  done = $state(0);
  isConnected = $state(true);
  /** How many bytes went over the wire, where only what has changed was sent. */
  sent = $state<number | null>(null);
  /** How much it is in all; nothing while nobody knows. */
  size = $state<number | null>(null);
  failure = $state.raw<unknown>();
  name = $state('');
  /** What is there, where somebody has to decide. */
  etag: string | null = null;
  stop = new AbortController();

  constructor(
    readonly id: number,
    size: number | null,
    readonly job: { up: UploadJob; folders: NodePath[] } | { down: DownloadJob },
  ) {
    this.size = size;
    this.name = 'up' in job ? nameOf(job.up.path) : job.down.name;
  }

  get isUpload(): boolean {
    return 'up' in this.job;
  }

  get isOver(): boolean {
    return this.state === 'done' || this.state === 'cancelled';
  }
}

/** A file that somebody chose, with the folders that it was in. */
export interface Chosen {
  file: File;
  folders: string[];
}

class Transfers {
  list = $state<Transfer[]>([]);
  #next = 0;
  #folders = new Map<string, Promise<void>>();

  get unfinished(): number {
    return this.list.filter((transfer) => !transfer.isOver && transfer.state !== 'failed').length;
  }

  upload(workspace: string, folder: NodePath, chosen: Chosen[]): void {
    this.#folders.clear();
    const made = chosen.map(({ file, folders }) => {
      const paths: NodePath[] = [];
      for (const name of folders) paths.push(joinPath(paths.at(-1) ?? folder, name));
      const path = joinPath(paths.at(-1) ?? folder, file.name);
      const condition = { ifAbsent: true } as const;
      const modifiedMs = file.lastModified;
      const up: UploadJob = { workspace, path, file, modifiedMs, condition, upload: null };
      return new Transfer(this.#next++, file.size, { up, folders: paths });
    });
    this.list.push(...made);
    this.#fill();
  }

  /** Begins a download of a file, or of an older version of it. */
  download(workspace: string, node: Node, version?: number, size = node.size): Promise<void> {
    const read = (signal: AbortSignal) =>
      session.client.file(workspace, node.path, { version, signal });
    return this.save(node.name, size ?? 0, read);
  }

  /** Begins a download of a folder with everything in it, as a ZIP file. */
  async archive(workspace: string, folder: NodePath, name: string): Promise<void> {
    const size = await fetchArchiveLength(session.client, workspace, folder);
    const read = (signal: AbortSignal) => fetchArchive(session.client, workspace, folder, signal);
    // What others share is called after them, with a slash.
    await this.save(`${name.replaceAll('/', '_')}.zip`, size, read);
  }

  /** Begins to save what is read; nothing happens where somebody gives up choosing a place. */
  async save(name: string, size: number | null, read: DownloadJob['read']): Promise<void> {
    let target;
    try {
      target = await pickTarget(name, size);
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') return;
      throw error;
    }
    this.list.push(new Transfer(this.#next++, size, { down: { name, read, target } }));
    this.#fill();
  }

  cancel(transfer: Transfer): void {
    transfer.stop.abort();
    transfer.state = 'cancelled';
    if ('up' in transfer.job && transfer.job.up.upload !== null) {
      const { workspace, upload: id } = transfer.job.up;
      void session.client.endUpload(workspace, id).catch(() => undefined);
    }
  }

  retry(transfer: Transfer): void {
    transfer.stop = new AbortController();
    transfer.failure = undefined;
    transfer.state = 'waiting';
    this.#fill();
  }

  /** Puts a file over the one that is there, which stays as an older version. */
  replace(transfer: Transfer): void {
    if (!('up' in transfer.job)) return;
    transfer.job.up.condition = transfer.etag === null ? undefined : { ifMatch: transfer.etag };
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
      up.upload = null;
      this.retry(transfer);
    } catch (error) {
      transfer.failure = error;
      transfer.state = 'failed';
    }
  }

  clear(): void {
    this.list = this.list.filter((transfer) => !transfer.isOver);
  }

  /** Ends all, as when somebody signs out. */
  end(): void {
    for (const transfer of this.list) if (!transfer.isOver) this.cancel(transfer);
    this.list = [];
  }

  #fill(): void {
    let running = this.list.filter((transfer) => transfer.state === 'sending').length;
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
      if ('up' in transfer.job) await this.#send(transfer, transfer.job.up, transfer.job.folders);
      else await this.#fetch(transfer, transfer.job.down);
      transfer.size ??= transfer.done;
      transfer.done = transfer.size;
      transfer.state = 'done';
    } catch (error) {
      if (signal.aborted) return;
      transfer.isConnected = true;
      transfer.failure = error;
      if (error instanceof NameClash) transfer.etag = error.etag;
      transfer.state = error instanceof NameClash ? 'clash' : 'failed';
    }
  }

  async #send(transfer: Transfer, job: UploadJob, folders: NodePath[]): Promise<void> {
    const { signal } = transfer.stop;
    for (const folder of folders) await this.#makeFolder(job.workspace, folder);
    const onProgress = (sent: number) => (transfer.done = sent);
    const onConnection = (isBack: boolean) => (transfer.isConnected = isBack);
    const onDelta = (sent: number) => (transfer.sent = sent);
    const hooks = { onProgress, onConnection, wait, sendDelta, onDelta };
    await upload(session.client, job, hooks, signal);
  }

  #fetch(transfer: Transfer, job: DownloadJob): Promise<void> {
    const onProgress = (received: number) => (transfer.done = received);
    const onSize = (size: number) => (transfer.size = size);
    return download(job, { onProgress, onSize }, transfer.stop.signal);
  }

  /** Makes a folder once for all files in it. */
  #makeFolder(workspace: string, folder: NodePath): Promise<void> {
    const key = `${workspace}/${folder}`;
    const found = this.#folders.get(key);
    if (found) return found;
    const making = session.client.makeFolder(workspace, folder).then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof ProblemError && error.code === 'taken') return;
        this.#folders.delete(key);
        throw error;
      },
    );
    this.#folders.set(key, making);
    return making;
  }
}

export const transfers = new Transfers();

// What has not been sent would be lost with the page.
addEventListener('beforeunload', (event) => {
  if (transfers.unfinished > 0) event.preventDefault();
});
