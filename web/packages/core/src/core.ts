import { BlockDelta, type BlockDeltaOptions } from './block-delta.ts';
import { Delta, type DeltaOptions } from './delta.ts';
import { WorkerPool, type Lease, type PoolWorker } from './pool.ts';
import type { ChunkList, Proof } from './protocol.ts';
import { startWorker } from './start.ts';

/** More workers than this wait for the disk and the network, and take memory. */
const WORKERS_MAX = 4;

const SEED_LENGTH = 32;

export interface CoreOptions {
  /** How many files are worked on at once; by default one for each processor, and four at most. */
  workers?: number;
  start?: () => PoolWorker;
}

export interface JobOptions {
  /** Ends the job at once. */
  signal?: AbortSignal | undefined;
  /** Hears how many bytes of the file were gone through. */
  onProgress?: ((done: number) => void) | undefined;
}

export interface ChunkOptions extends JobOptions {
  /** The 32 bytes from which the keys of a workspace follow. */
  secret: Uint8Array;
  /** The average length of a chunk in bytes: a power of two. */
  average: number;
}

/** Does in workers what the program does natively, to the byte. Every method throws [CoreError]. */
export class Core {
  readonly #pool: WorkerPool;

  constructor(options: CoreOptions = {}) {
    const workers = options.workers ?? Math.min(navigator.hardwareConcurrency || 1, WORKERS_MAX);
    this.#pool = new WorkerPool(options.start ?? startWorker, workers);
  }

  /** Cuts a file into chunks and names them. */
  async chunk(
    file: Blob,
    { secret, average, signal, onProgress }: ChunkOptions,
  ): Promise<ChunkList> {
    return this.#once(signal, (lease) =>
      lease.call('chunk', { file, secret, average }, { onProgress }),
    );
  }

  /** Begins to send a new version of a file of a plain workspace as what has changed in it. Whoever begins one ends it. */
  async delta(file: Blob, options: DeltaOptions): Promise<Delta> {
    return Delta.begin(await this.#pool.take(options.signal), file, options);
  }

  /**
   * Proves a password to a server without sending it, and sets `newPassword` in its place so, where that is not null. `ask` brings
   * the first messages to the server, and its answers back. Returns the last messages.
   */
  async prove(
    password: string,
    newPassword: string | null,
    ask: (first: Proof) => Promise<Proof>,
  ): Promise<Proof> {
    return this.#once(undefined, async (lease) => {
      const seed = crypto.getRandomValues(new Uint8Array(SEED_LENGTH));
      const first = await lease.call('proofBegin', { password, newPassword, seed });
      return lease.call('proofFinish', await ask(first));
    });
  }

  /**
   * Sets the password of a new account without sending it. `ask` brings the first message to the server, and its answer back. Returns
   * what the server is to keep.
   */
  async newPassword(
    password: string,
    ask: (first: Uint8Array) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    return this.#once(undefined, async (lease) => {
      const seed = crypto.getRandomValues(new Uint8Array(SEED_LENGTH));
      const first = await lease.call('passwordBegin', { password, seed });
      return lease.call('passwordFinish', { answer: await ask(first) });
    });
  }

  /** Begins a delta of the paper. Whoever begins one ends it. */
  async blockDelta(file: Blob, options: BlockDeltaOptions): Promise<BlockDelta> {
    return BlockDelta.begin(await this.#pool.take(options.signal), file, options);
  }

  /** The most bytes of memory that the module of any worker has had. */
  get memory(): number {
    return this.#pool.memory;
  }

  /** Ends the workers. */
  close(): void {
    this.#pool.close();
  }

  async #once<Answer>(
    signal: AbortSignal | undefined,
    work: (lease: Lease) => Promise<Answer>,
  ): Promise<Answer> {
    const lease = await this.#pool.take(signal);
    try {
      return await work(lease);
    } finally {
      await lease.end();
    }
  }
}
