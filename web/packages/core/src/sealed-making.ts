// A sealed workspace that is made here: its keys are in a worker, and what leaves it is locked, but for the recovery key.

import { WorkerPool, type Lease, type PoolWorker } from './pool.ts';
import type { SealedMade } from './protocol.ts';
import { SealedWorkspace, type SealedOptions } from './sealed.ts';
import { startWorker } from './start.ts';

export interface MakingOptions {
  name: string;
  passphrase: string;
  start?: () => PoolWorker;
}

/** A workspace that no server has yet. Whoever makes one opens it, or leaves it. */
export class SealedMaking {
  readonly #pool: WorkerPool;
  readonly #lease: Lease;
  readonly made: SealedMade;
  #isOver = false;

  private constructor(pool: WorkerPool, lease: Lease, made: SealedMade) {
    this.#pool = pool;
    this.#lease = lease;
    this.made = made;
  }

  /** Makes the keys. Throws a [CoreError], `name` and `passphrase` for those that cannot be. */
  static async make({ start, ...what }: MakingOptions): Promise<SealedMaking> {
    const pool = new WorkerPool(start ?? startWorker, 1);
    const lease = await pool.take();
    try {
      const made = await lease.call('sealedMake', { ...what, createdMs: Date.now() });
      return new SealedMaking(pool, lease, made);
    } catch (error) {
      await lease.end();
      pool.close();
      throw error;
    }
  }

  /** Opens the workspace, once its server has it; nothing is read of it yet. */
  async open({
    device: { id: device, name: deviceName },
    ...from
  }: Pick<SealedOptions, 'device' | 'source' | 'seen'>): Promise<SealedWorkspace> {
    const { name } = await this.#lease.call('sealedMade', { device, deviceName });
    this.#isOver = true;
    return SealedWorkspace.opened(this.#pool, this.#lease, { ...from, name });
  }

  /** Overwrites the keys, where it was not opened. */
  async leave(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#lease.end();
    this.#pool.close();
  }
}
