// How fast all transfers go together.

import { Pace } from './pace.ts';
import type { Transfer } from './transfer.svelte.ts';

/** What a file costs beside its bytes, as bytes: of a thousand small ones most. */
const FILE_COST = 64 * 1024;

export class Speed {
  /** Bytes in a second; nothing while nobody knows. */
  rate = $state<number | null>(null);
  readonly #pace = new Pace();
  /** With what each file costs beside its bytes. */
  readonly #work = new Pace();
  #moved = 0;
  #ended = 0;

  /** How long it takes until nothing of what is running runs any more; nothing while nobody knows. */
  secondsFor(running: readonly Transfer[]): number | null {
    if (running.length === 0 || running.some(({ size }) => size === null)) return null;
    const work = running.reduce((sum, { size, done }) => sum + (size ?? 0) - done + FILE_COST, 0);
    return this.#work.secondsFor(work);
  }

  /** Takes note of how far one of them is. */
  note(transfer: Transfer, done: number): void {
    this.#moved += Math.max(0, done - transfer.done);
    if (done === transfer.size) this.#ended += FILE_COST;
    this.#pace.note(this.#moved, performance.now());
    this.#work.note(this.#moved + this.#ended, performance.now());
    this.rate = this.#pace.rate;
    transfer.progress(done);
  }

  /** Nothing runs any more. */
  rest(): void {
    this.#pace.rest();
    this.#work.rest();
    [this.rate, this.#moved, this.#ended] = [null, 0, 0];
  }
}
