// A file on its way into an encrypted workspace.

import { newKey } from '../transfers/memory.ts';
import { Pace } from '../transfers/pace.ts';
import type { Over, Unput } from './remembered.ts';
import { pathOf } from './view.svelte.ts';

export type UploadState =
  'waiting' | 'sending' | 'paused' | 'clash' | 'failed' | 'done' | 'cancelled';

export class SealedUpload {
  state = $state<UploadState>('waiting');
  name = $state('');
  /** How many bytes of the file were read. */
  done = $state(0);
  /** How many bytes were sent for it. */
  sent = $state(0);
  /** How long it still takes; nothing while nobody knows. */
  secondsLeft = $state<number | null>(null);
  failure = $state.raw<unknown>();
  /** Whether somebody else has changed the file at the same moment, so that this one lies beside it. */
  isBeside = $state(false);
  /** The version that is to be replaced, where somebody has said so. */
  over: Over | null = null;
  /** What had its name when somebody was asked. */
  rival: Over | null = null;
  stop = new AbortController();
  readonly #pace = new Pace();

  constructor(
    readonly id: number,
    readonly file: File,
    /** The folder that was open, and those below it into which it goes. */
    readonly place: { folder: string; below: readonly string[] },
    /** By what it is remembered, should the page go away. */
    readonly key = newKey(),
  ) {
    this.name = file.name;
  }

  get isRunning(): boolean {
    return this.state === 'waiting' || this.state === 'sending';
  }

  /** Whether nothing comes of it any more unless somebody decides so. */
  get isOver(): boolean {
    return !this.isRunning && this.state !== 'paused';
  }

  /** Whether nobody has anything to do about it any more. */
  get isGone(): boolean {
    return this.state === 'done' || this.state === 'cancelled';
  }

  /** Takes note of how far it is. */
  progress(done: number, sent: number): void {
    // What is only read, since it was sent before, tells nothing of how fast the rest goes.
    if (sent > this.sent) this.#pace.note(done, performance.now());
    else this.#pace.rest();
    [this.done, this.sent] = [done, sent];
    this.secondsLeft = this.#pace.secondsFor(this.file.size - done);
  }

  /** Ends what is going on; it may begin anew. */
  halt(state: 'paused' | 'cancelled'): void {
    this.stop.abort();
    this.state = state;
  }

  /** Begins anew, after a pause or a failure. */
  again(): void {
    this.stop = new AbortController();
    this.#pace.rest();
    [this.failure, this.secondsLeft, this.sent] = [undefined, null, 0];
    this.state = 'waiting';
  }

  /** What is remembered of it. */
  get record(): Unput {
    const { file, key, name: target, over } = this;
    const { folder, below } = this.place;
    const { name, size, lastModified: modifiedMs } = file;
    return { key, folder, below, name, target, path: pathOf(below, name), size, modifiedMs, over };
  }
}
