// Workers, as many as are wanted at once and no more than there may be. Whoever takes one has it alone until it is given back.

import { CoreError } from './error.ts';
import type { Call, CallName, Calls, Reply } from './protocol.ts';

/** What the pool needs of a `Worker`. */
export type PoolWorker = Pick<Worker, 'postMessage' | 'terminate' | 'onmessage' | 'onerror'>;

export interface CallOptions {
  /** Hears how many bytes of the file were gone through. */
  onProgress?: ((done: number) => void) | undefined;
  /** Takes what a call gives before it ends. */
  onPart?: ((bytes: Uint8Array<ArrayBuffer>) => void) | undefined;
  /** What the worker gets instead of a copy: it is gone here. */
  moved?: Transferable[] | undefined;
}

/** A worker that somebody has alone. What it remembers between two calls belongs to him. */
export class Lease {
  readonly #pool: WorkerPool;
  readonly #worker: PoolWorker;
  readonly #signal: AbortSignal | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #isOver = false;

  constructor(pool: WorkerPool, worker: PoolWorker, signal: AbortSignal | undefined) {
    this.#pool = pool;
    this.#worker = worker;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
  }

  /** Calls the worker, and waits for the answer. */
  call<Name extends CallName>(
    name: Name,
    ask: Calls[Name]['ask'],
    options: CallOptions = {},
  ): Promise<Calls[Name]['answer']> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        this.#reject = undefined;
        reject(error);
      };
      if (this.#isOver) return fail(this.#signal?.reason ?? broken('the session is over'));
      this.#reject = fail;
      this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
        if (data.kind === 'progress') return options.onProgress?.(data.done);
        if (data.kind === 'part') return options.onPart?.(data.bytes);
        this.#reject = undefined;
        if (data.kind === 'answer') return resolve(data.answer as Calls[Name]['answer']);
        const { failed } = data;
        if (failed.code === 'broken' || failed.code === 'unsupported') this.#discard();
        reject(new CoreError(failed));
      };
      this.#worker.onerror = (event) => {
        this.#discard();
        fail(broken(event.message || 'the worker could not be loaded'));
      };
      this.#worker.postMessage({ name, ask } as Call, options.moved ?? []);
    });
  }

  /** What it is for is done: whoever ends that by now ends no call that comes after it. */
  unbind(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }

  /** Gives the worker back; what it remembers is forgotten. */
  async end(): Promise<void> {
    if (this.#isOver) return;
    try {
      const memory = await this.call('end', null);
      if (!this.#over()) return;
      this.#pool.giveBack(this.#worker, memory);
    } catch {
      this.#discard();
    }
  }

  /** A worker in the middle of a search hears nobody: it is ended, and another one takes its place. */
  readonly #onAbort = () => {
    this.#discard();
    this.#reject?.(this.#signal?.reason);
  };

  #discard(): void {
    if (!this.#over()) return;
    this.#worker.terminate();
    this.#pool.giveBack(null, 0);
  }

  /** Says whether it was not over before. */
  #over(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.unbind();
    return true;
  }
}

function broken(message: string): CoreError {
  return new CoreError({ code: 'broken', message, isRetryable: false });
}

export class WorkerPool {
  readonly #make: () => PoolWorker;
  readonly #size: number;
  readonly #idle: PoolWorker[] = [];
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #isClosed = false;
  /** The most bytes of memory that any module has said to have. */
  memory = 0;

  constructor(make: () => PoolWorker, size: number) {
    this.#make = make;
    this.#size = Math.max(1, Math.floor(size));
  }

  /** Takes a worker, or waits until one is free. */
  async take(signal?: AbortSignal): Promise<Lease> {
    signal?.throwIfAborted();
    while (this.#taken >= this.#size && !this.#isClosed) await this.#wait(signal);
    if (this.#isClosed) throw broken('the core is closed');
    if (signal?.aborted) {
      // Who was woken and does not want it any more wakes the next.
      this.#waiting.shift()?.();
      throw signal.reason;
    }
    this.#taken += 1;
    try {
      return new Lease(this, this.#idle.pop() ?? this.#make(), signal);
    } catch (error) {
      this.giveBack(null, 0);
      throw error;
    }
  }

  giveBack(worker: PoolWorker | null, memory: number): void {
    this.#taken -= 1;
    this.memory = Math.max(this.memory, memory);
    if (worker && this.#isClosed) worker.terminate();
    else if (worker) this.#idle.push(worker);
    this.#waiting.shift()?.();
  }

  /** Ends the idle workers; those at work are ended when they are given back. */
  close(): void {
    this.#isClosed = true;
    for (const worker of this.#idle.splice(0)) worker.terminate();
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        const place = this.#waiting.indexOf(wake);
        if (place >= 0) this.#waiting.splice(place, 1);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.push(wake);
    });
  }
}
