// Files on their way into an encrypted workspace that is open, one after the other: all of them share one worker.

import type { SealedNode, SealedWorkspace } from '@syncline/core';
import { freeName } from '../files/names.ts';
import type { Chosen } from '../transfers/dropped.ts';
import { codeOf } from '../words/problem.ts';
import { unlocked } from './unlocked.svelte.ts';

export type UploadState = 'waiting' | 'sending' | 'clash' | 'failed' | 'done' | 'cancelled';

export class SealedUpload {
  state = $state<UploadState>('waiting');
  name = $state('');
  /** How many bytes of the file were read. */
  done = $state(0);
  /** How many bytes were sent for it. */
  sent = $state(0);
  failure = $state.raw<unknown>();
  /** Whether somebody else has changed the file at the same moment, so that this one lies beside it. */
  isBeside = $state(false);
  /** The version that is to be replaced, where somebody has said so. */
  over: number | null = null;
  stop = new AbortController();

  constructor(
    readonly id: number,
    readonly file: File,
    /** The folder that was open, and those below it into which it goes. */
    readonly place: { folder: string; below: readonly string[] },
  ) {
    this.name = file.name;
  }

  get isRunning(): boolean {
    return this.state === 'waiting' || this.state === 'sending';
  }
}

export class SealedUploads {
  list = $state<SealedUpload[]>([]);
  /** How many bytes are stored of files that were on their way when a page went away. */
  unfinished = $state(0);
  /** Grows with everything that has changed the workspace. */
  changes = $state(0);
  #next = 0;
  #isBusy = false;

  constructor(readonly open: SealedWorkspace) {
    this.unfinished = open.changes.unfinished;
  }

  /** Forgets what is stored of files that were on their way. */
  giveUp(): void {
    this.open.changes.giveUp();
    this.unfinished = 0;
  }

  get running(): number {
    return this.list.filter((upload) => upload.isRunning).length;
  }

  /** Sends what somebody has chosen; folders are made, also those with nothing in them. */
  async add(folder: string, chosen: readonly Chosen[]): Promise<void> {
    const made: SealedUpload[] = [];
    for (const { file, folders } of chosen) {
      if (file) made.push(new SealedUpload(this.#next++, file, { folder, below: folders }));
    }
    this.list.push(...made);
    for (const { file, folders } of chosen) if (!file) await this.#folder(folder, folders);
    void this.#run();
  }

  retry(upload: SealedUpload): void {
    upload.stop = new AbortController();
    upload.failure = undefined;
    upload.state = 'waiting';
    void this.#run();
  }

  /** Puts the file over the one that is there, which stays as an older version. */
  async replace(upload: SealedUpload): Promise<void> {
    const found = await this.#find(upload, upload.name);
    upload.over = found?.kind === 'file' ? found.version : null;
    this.retry(upload);
  }

  /** Puts the file under another name. */
  async keepBoth(upload: SealedUpload): Promise<void> {
    const isTaken = async (name: string) => (await this.#find(upload, name)) !== undefined;
    upload.name = await freeName(upload.name, isTaken);
    upload.over = null;
    this.retry(upload);
  }

  cancel(upload: SealedUpload): void {
    upload.stop.abort();
    upload.state = 'cancelled';
  }

  clear(): void {
    this.list = this.list.filter(({ isRunning }) => isRunning);
  }

  /** Ends all. */
  end(): void {
    for (const upload of this.list) if (upload.isRunning) this.cancel(upload);
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (;;) {
      const next = this.list.find(({ state }) => state === 'waiting');
      if (!next) break;
      next.state = 'sending';
      await this.#send(next);
      this.changes++;
    }
    this.#isBusy = false;
    this.unfinished = this.open.changes.unfinished;
  }

  async #send(upload: SealedUpload): Promise<void> {
    const { file, name, over, stop } = upload;
    const onProgress = (done: number, sent: number) => {
      unlocked.use();
      [upload.done, upload.sent] = [done, sent];
    };
    try {
      const folder = await this.#folder(upload.place.folder, upload.place.below);
      const ask = { folder, name, over, file };
      const done = await this.open.changes.put(ask, { signal: stop.signal, onProgress });
      [upload.isBeside, upload.done] = [done.isBeside || done.isPartial, file.size];
      upload.state = 'done';
    } catch (error) {
      if (stop.signal.aborted) return;
      upload.failure = error;
      upload.state = ['taken', 'changed'].includes(codeOf(error)) ? 'clash' : 'failed';
    }
  }

  /** Finds a folder below another one, and makes what is missing of the way to it. */
  async #folder(top: string, below: readonly string[]): Promise<string> {
    let folder = top;
    for (const name of below) {
      await this.open.catchUp();
      const found = (await this.open.list(folder)).find((node) => node.name === name);
      if (found?.kind === 'folder') {
        folder = found.id;
        continue;
      }
      const made = await this.open.changes.makeFolder(folder, name);
      this.changes++;
      folder = made.node ?? folder;
    }
    return folder;
  }

  async #find(upload: SealedUpload, name: string): Promise<SealedNode | undefined> {
    const folder = await this.#folder(upload.place.folder, upload.place.below);
    await this.open.catchUp();
    return (await this.open.list(folder)).find((node) => node.name === name);
  }
}

const all = new WeakMap<SealedWorkspace, SealedUploads>();
const running = new Set<WeakRef<SealedUploads>>();

/** Returns the uploads of a workspace, which go on while another page of the app is shown. */
export function uploadsOf(open: SealedWorkspace): SealedUploads {
  let uploads = all.get(open);
  if (!uploads) {
    uploads = new SealedUploads(open);
    all.set(open, uploads);
    running.add(new WeakRef(uploads));
  }
  return uploads;
}

// What is running stands still without the page.
addEventListener('beforeunload', (event) => {
  for (const uploads of running) if ((uploads.deref()?.running ?? 0) > 0) event.preventDefault();
});
