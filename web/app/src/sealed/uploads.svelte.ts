// Files on their way into an encrypted workspace that is open, one after the other: all of them share one worker.

import type { SealedNode, SealedWorkspace } from '@syncline/core';
import { freeName } from '../files/names.ts';
import { session } from '../sign-in/session.svelte.ts';
import type { Chosen } from '../transfers/dropped.ts';
import { isSame, match } from '../transfers/matching.ts';
import { FileChanged, isAsChosen } from '../transfers/as-chosen.ts';
import { codeOf } from '../words/problem.ts';
import { persistently } from './persistently.ts';
import { overOf, UnputMemory, type Over, type Unput } from './remembered.ts';
import { SealedUpload } from './upload.svelte.ts';
import { unlocked } from './unlocked.svelte.ts';
import { pathOf } from './view.svelte.ts';

export class SealedUploads {
  list = $state<SealedUpload[]>([]);
  /** How many bytes are stored of files that were on their way when a page went away. */
  unfinished = $state(0);
  /** What was on its way when a page went away, and waits for its file. */
  lost = $state.raw<Unput[]>([]);
  /** Grows with everything that has changed the workspace. */
  changes = $state(0);
  #next = 0;
  #isBusy = false;
  readonly #memory: UnputMemory;

  constructor(
    readonly open: SealedWorkspace,
    workspace: string,
  ) {
    this.unfinished = open.changes.unfinished;
    this.#memory = new UnputMemory(open, workspace, session.account ?? '');
  }

  /** Finds out what was on its way when a page went away. */
  async recall(): Promise<void> {
    const found = await this.#memory.adopt();
    const isHere = ({ key }: Unput) => this.list.some((upload) => upload.key === key);
    this.lost = [...this.lost, ...found.filter((one) => !isHere(one))];
  }

  /** Forgets what was on its way, and what is stored of it, where nothing is on its way that may need some of that. */
  giveUp(): void {
    void this.#memory.forget(this.lost.map(({ key }) => key));
    this.lost = [];
    if (this.unended > 0) return;
    this.open.changes.giveUp();
    this.unfinished = 0;
  }

  /** Goes on with files that somebody picked again; says whether there were any. */
  pick(chosen: readonly Chosen[]): boolean {
    const found = match(this.lost, chosen, ({ below }) => below.length > 0);
    this.list.push(...found.map(({ record, file }) => this.#again(record, file)));
    void this.#run();
    return found.length > 0;
  }

  #again(record: Unput, file: File): SealedUpload {
    const { folder, below, key, target, over } = record;
    this.lost = this.lost.filter((one) => one !== record);
    const upload = new SealedUpload(this.#next++, file, { folder, below }, key);
    [upload.name, upload.over] = [target, over];
    return upload;
  }

  /** A file on its way to where somebody has chosen it to go; one that was on its way there before goes on. */
  #begin(file: File, folder: string, below: readonly string[]): SealedUpload {
    const path = pathOf(below, file.name);
    const before = this.lost.find(
      (one) => one.folder === folder && one.path === path && isSame(one, file),
    );
    if (before) return this.#again(before, file);
    return new SealedUpload(this.#next++, file, { folder, below });
  }

  get running(): number {
    return this.list.filter((upload) => upload.isRunning).length;
  }

  /** How many are running, or paused. */
  get unended(): number {
    return this.list.filter(({ isOver }) => !isOver).length;
  }

  /** Sends what somebody has chosen; folders are made, also those with nothing in them. */
  async add(folder: string, chosen: readonly Chosen[]): Promise<void> {
    const made = chosen.flatMap(({ file, folders }) =>
      file ? [this.#begin(file, folder, folders)] : [],
    );
    this.list = this.list.concat(made);
    void this.#memory.remember(made.map(({ record }) => record));
    const faults: unknown[] = [];
    for (const { file, folders: below } of chosen)
      if (!file) await this.#folder(folder, below).catch((error) => void faults.push(error));
    void this.#run();
    if (faults.length > 0) throw faults[0];
  }

  /** What is stored of it by then is not sent again when it goes on. */
  pause(upload: SealedUpload): void {
    upload.halt('paused');
  }

  /** Begins again, after a pause or a failure. */
  retry(upload: SealedUpload): void {
    upload.again();
    void this.#run();
  }

  /** Puts the file over the one that is there, which stays as an older version. */
  replace(upload: SealedUpload): void {
    this.#decide(upload, upload.rival);
  }

  /** Puts the file under another name. */
  async keepBoth(upload: SealedUpload): Promise<void> {
    const isTaken = async (name: string) => (await this.#find(upload, name)) !== undefined;
    try {
      this.#decide(upload, null, await freeName(upload.name, isTaken));
    } catch (error) {
      if (upload.state === 'clash') [upload.failure, upload.state] = [error, 'failed'];
    }
  }

  /** Sends it as somebody has decided, unless it was cancelled meanwhile. */
  #decide(upload: SealedUpload, over: Over | null, name = upload.name): void {
    if (upload.state !== 'clash') return;
    [upload.name, upload.over] = [name, over];
    void this.#memory.remember([upload.record]);
    this.retry(upload);
  }

  cancel(upload: SealedUpload): void {
    upload.halt('cancelled');
    void this.#memory.forget([upload.key]);
  }

  /** What has failed, or waits for a decision, stays. */
  clear(): void {
    void this.#memory.forget(this.list.filter(({ isGone }) => isGone).map(({ key }) => key));
    this.list = this.list.filter(({ isGone }) => !isGone);
  }

  /** Ends all; what was on its way is offered when the workspace is unlocked again. */
  end(): void {
    for (const upload of this.list) if (!upload.isOver) upload.halt('cancelled');
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
      if (!stop.signal.aborted) upload.progress(done, sent);
    };
    const step = { isPut: false };
    const put = async () => {
      step.isPut = false;
      const folder = await this.#folder(upload.place.folder, upload.place.below);
      step.isPut = true;
      const ask = { folder, name, over, isBeside: true, file };
      return this.open.changes.put(ask, { signal: stop.signal, onProgress });
    };
    try {
      // Many may wait, and none of them fails because the line was away for a moment.
      const done = await persistently(put, stop.signal);
      // What is small travels in the commit, which comes after all progress.
      upload.sent = done.sent;
      this.#done(upload, done.isBeside || done.isPartial);
    } catch (error) {
      const failure = (await isAsChosen(file)) ? error : new FileChanged();
      // Where a file is in the place of a folder above it, nothing has its name.
      const isClash = step.isPut && ['taken', 'changed'].includes(codeOf(error));
      const rival = isClash ? await this.#find(upload, name).catch(() => undefined) : undefined;
      if (isClash) upload.rival = overOf(rival);
      // It may be what was put before the line broke: nobody has to decide between a file and itself.
      if (rival && (await this.#isThere(rival, file, stop.signal)))
        return this.#done(upload, false);
      if (stop.signal.aborted) return;
      upload.failure = failure;
      upload.state = isClash ? 'clash' : 'failed';
    }
  }

  #done(upload: SealedUpload, isBeside: boolean): void {
    [upload.isBeside, upload.done, upload.state] = [isBeside, upload.file.size, 'done'];
    void this.#memory.forget([upload.key]);
  }

  /** Whether a file has the content of another one. */
  async #isThere(node: SealedNode, file: File, signal: AbortSignal): Promise<boolean> {
    if (node.kind !== 'file' || node.size !== file.size) return false;
    if (file.size === 0) return true;
    return this.open.listing.isVersion(file, node, signal).catch(() => false);
  }

  /** Finds a folder below another one, and makes what is missing of the way to it. */
  async #folder(top: string, below: readonly string[]): Promise<string> {
    let folder = top;
    for (const name of below) {
      await this.open.catchUp();
      const found = (await this.open.list(folder)).find((node) => node.name === name);
      if (found?.kind === 'folder') folder = found.id;
      else {
        folder = (await this.open.changes.makeFolder(folder, name)).node ?? folder;
        this.changes++;
      }
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
export function uploadsOf(open: SealedWorkspace, workspace: string): SealedUploads {
  let uploads = all.get(open);
  if (!uploads) {
    uploads = new SealedUploads(open, workspace);
    // A browser that keeps nothing offers nothing.
    uploads.recall().catch(() => undefined);
    all.set(open, uploads);
    running.add(new WeakRef(uploads));
  }
  return uploads;
}

// What is running stands still without the page.
addEventListener('beforeunload', (event) => {
  for (const uploads of running) if ((uploads.deref()?.running ?? 0) > 0) event.preventDefault();
});
