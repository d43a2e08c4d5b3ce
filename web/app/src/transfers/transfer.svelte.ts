// One file on its way.

import { nameOf, type NodePath } from '@syncline/api';
import { discard, type DownloadJob } from './download.ts';
import { Pace } from './pace.ts';
import type { UploadJob } from './upload.ts';

export type TransferState =
  'waiting' | 'sending' | 'paused' | 'clash' | 'failed' | 'done' | 'cancelled';

export interface UploadTask {
  up: UploadJob;
  folders: NodePath[];
  /** By what it is remembered, should the page go away. */
  key: string;
}

export class Transfer {
  state = $state<TransferState>('waiting');
  done = $state(0);
  isConnected = $state(true);
  /** How many bytes went over the wire, where only what has changed was sent. */
  sent = $state<number | null>(null);
  /** Whether a large file is gathered by the browser, perhaps in memory. */
  isGathered = $state(false);
  /** How much it is in all; nothing while nobody knows. */
  size = $state<number | null>(null);
  /** How long it still takes; nothing while nobody knows. */
  secondsLeft = $state<number | null>(null);
  failure = $state.raw<unknown>();
  name = $state('');
  /** What is there, where somebody has to decide. */
  etag: string | null = null;
  stop = new AbortController();
  readonly pace = new Pace();

  constructor(
    readonly id: number,
    size: number | null,
    readonly job: UploadTask | { down: DownloadJob },
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

  /** Whether it is on its way, or soon will be. */
  get isRunning(): boolean {
    return this.state === 'sending' || this.state === 'waiting';
  }

  /** Whether it goes on after a pause where it was. */
  get isPausable(): boolean {
    return 'up' in this.job || this.job.down.isResumable === true;
  }

  /** Takes note of how far it is. */
  progress(done: number): void {
    this.done = done;
    this.pace.note(done, performance.now());
    this.secondsLeft = this.size === null ? null : this.pace.secondsFor(this.size - done);
  }

  /** Throws away what has come of a download that was halted. */
  async discard(): Promise<void> {
    if ('down' in this.job) await discard(this.job.down);
  }

  /** Ends what is going on; it may begin anew. */
  halt(state: TransferState): void {
    this.stop.abort();
    this.stop = new AbortController();
    this.pace.rest();
    this.secondsLeft = null;
    this.state = state;
  }
}
