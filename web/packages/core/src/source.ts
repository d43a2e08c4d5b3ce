// A file as the module reads it: at once, which browsers allow in workers only.

declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

/** How many bytes are read at a time of what is read in order. */
const READ_LENGTH = 4 * 1024 * 1024;

export class BlobSource {
  readonly size: number;
  readonly #readLength: number;
  readonly #file: Blob;
  readonly #reader = new FileReaderSync();
  readonly #onProgress: (done: number) => void;
  #start = 0;
  #bytes = new Uint8Array();

  constructor(
    file: Blob,
    onProgress: (done: number) => void = () => undefined,
    readLength = READ_LENGTH,
  ) {
    this.size = file.size;
    this.#readLength = readLength;
    this.#file = file;
    this.#onProgress = onProgress;
  }

  /** Reads the first bytes ahead: two files at once take little longer than one. */
  async readAhead(): Promise<void> {
    this.#take(0, await this.#file.slice(0, this.#readLength).arrayBuffer());
  }

  /** Fills `into` with the bytes from `offset` on; throws where not all of them can be read. */
  readAt(offset: number, into: Uint8Array): void {
    let filled = 0;
    while (filled < into.length) {
      const from = offset + filled - this.#start;
      if (from < 0 || from >= this.#bytes.length) this.#read(offset + filled);
      const begin = offset + filled - this.#start;
      const some = this.#bytes.subarray(begin, begin + into.length - filled);
      if (some.length === 0) throw new RangeError('the file ends before these bytes');
      into.set(some, filled);
      filled += some.length;
    }
  }

  #read(start: number): void {
    const piece = this.#file.slice(start, start + this.#readLength);
    this.#take(start, this.#reader.readAsArrayBuffer(piece));
  }

  #take(start: number, bytes: ArrayBuffer): void {
    this.#bytes = new Uint8Array(bytes);
    this.#start = start;
    this.#onProgress(start + this.#bytes.length);
  }
}
