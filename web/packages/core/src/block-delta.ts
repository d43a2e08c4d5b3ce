import type { JobOptions } from './core.ts';
import { collect, drawSession, sendableOf, type DeltaBody, type Sendable } from './delta.ts';
import { frameOf } from './frames.ts';
import type { Lease } from './pool.ts';
import type { Tuning } from './protocol.ts';

export interface BlockDeltaOptions extends JobOptions {
  /** The encoded genesis of the workspace. */
  genesis: Uint8Array;
  tuning: Tuning;
  /** Whether the server searches (WebR2sync), not the client (WebRsync). */
  isReversed: boolean;
  /** 16 random bytes; by default they are drawn. */
  session?: Uint8Array;
}

/** The deltas of the paper, to compare with ours: one exchange, in a worker of its own until it is ended. */
export class BlockDelta {
  readonly #lease: Lease;
  readonly #options: JobOptions;
  /** The body of the first request. */
  readonly opening: Sendable;

  private constructor(lease: Lease, options: JobOptions, opening: Sendable) {
    this.#lease = lease;
    this.#options = options;
    this.opening = opening;
  }

  static async begin(lease: Lease, file: Blob, options: BlockDeltaOptions): Promise<BlockDelta> {
    const { genesis, tuning, isReversed, onProgress } = options;
    const session = options.session ?? drawSession();
    try {
      const ask = { file, genesis, session, tuning, isReversed };
      const opening = await lease.call('blockBegin', ask, { onProgress });
      return new BlockDelta(lease, options, sendableOf(frameOf(opening)));
    } catch (error) {
      await lease.end();
      throw error;
    }
  }

  /** Makes the body of the second request, from the answer to the first. */
  reply(message: Uint8Array): Promise<DeltaBody> {
    return collect(this.#options, (options) =>
      this.#lease.call('blockReply', { message }, options),
    );
  }

  /** Takes the answer to the second; where it says false, one begins again with `careful`. */
  takeAnswer(message: Uint8Array): Promise<boolean> {
    return this.#lease.call('blockAnswer', { message });
  }

  end(): Promise<void> {
    return this.#lease.end();
  }
}
