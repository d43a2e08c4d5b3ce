// Memory that is used again and again, for what comes in pieces: new memory for each of them stands around until a collector takes it away,
// and none hurries for what is not in its own heap.

/** What a record of a pack needs, but for one that is a single chunk of more than a MiB. */
export const SPARE_LENGTH = 1024 * 1024 + 64 * 1024;

/** For less than this new memory costs nothing. */
const LENGTH_MIN = 64 * 1024;

/** How many are kept: as many as are asked for at once, while those of before are at work. */
const COUNT_MAX = 8;

type Bytes = Uint8Array<ArrayBuffer>;

export class SpareMemory {
  readonly #free: ArrayBuffer[] = [];

  /** Gives memory of this length; none where it is not worth it. */
  take(length: number): Bytes | undefined {
    if (length < LENGTH_MIN || length > SPARE_LENGTH) return undefined;
    return new Uint8Array(this.#free.pop() ?? new ArrayBuffer(SPARE_LENGTH), 0, length);
  }

  /** Takes back what is no longer used, and lets go of what never came from here. */
  giveBack({ buffer }: Bytes): void {
    if (buffer.byteLength === SPARE_LENGTH && this.#free.length < COUNT_MAX)
      this.#free.push(buffer);
  }
}
