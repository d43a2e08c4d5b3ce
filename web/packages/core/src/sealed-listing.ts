// What whoever keeps a copy of a folder asks a sealed workspace for. The worker has folded the log, and answers without the server.

import type { SealedPlaced } from './protocol.ts';
import type { SealedCall } from './sealed-history.ts';

export class SealedListing {
  readonly #call: SealedCall;

  constructor(call: SealedCall) {
    this.#call = call;
  }

  /** All that is in a folder and in those below it at one moment, each after its folder. */
  all(folder: string): Promise<SealedPlaced[]> {
    return this.#call('sealedListAll', { folder });
  }

  /** Whether a file is what another one is in a version, which has to be its newest. */
  async isVersion(
    file: Blob,
    { id, version }: { id: string; version: number },
    signal?: AbortSignal,
  ): Promise<boolean> {
    const comparison = await this.#call('sealedCompare', { node: id, version, file });
    try {
      for (;;) {
        signal?.throwIfAborted();
        const isEqual = await this.#call('sealedCompareOn', { comparison });
        if (isEqual !== null) return isEqual;
      }
    } finally {
      // Where the workspace was locked meanwhile, all is forgotten.
      await this.#call('sealedCompareEnd', { comparison }).catch(() => undefined);
    }
  }
}
