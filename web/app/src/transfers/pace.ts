// How fast something goes, smoothed, so that what is said of it can be read.

/** A change of speed is believed to two thirds after so long. */
const SMOOTHING_MS = 5_000;
/** What is nearer together than this tells little. */
const STEP_MS = 250;

export class Pace {
  /** Bytes in a second; nothing before it can be told. */
  rate: number | null = null;
  #done = 0;
  #at: number | null = null;

  /** Takes note of how many bytes are done at a moment. */
  note(done: number, nowMs: number): void {
    if (this.#at === null || done < this.#done) {
      [this.#done, this.#at] = [done, nowMs];
      return;
    }
    const passed = nowMs - this.#at;
    if (passed < STEP_MS) return;
    const rate = ((done - this.#done) / passed) * 1000;
    const weight = this.rate === null ? 1 : 1 - Math.exp(-passed / SMOOTHING_MS);
    this.rate = (this.rate ?? 0) + weight * (rate - (this.rate ?? 0));
    [this.#done, this.#at] = [done, nowMs];
  }

  /** Begins anew, as after a pause. */
  rest(): void {
    [this.rate, this.#at, this.#done] = [null, null, 0];
  }

  /** How long it takes until so many more bytes are done; nothing where nobody knows. */
  secondsFor(bytes: number): number | null {
    return this.rate === null || this.rate < 1 ? null : bytes / this.rate;
  }
}
