import type { SealedComparison, SealedWorkspace } from '../dist/core.js';
import type { Calls } from './protocol.ts';
import { BlobSource } from './source.ts';

/** How much of a file is cut at once. */
const PIECE_LENGTH = 1024 * 1024;

/** After so much of a file others have their turn. */
const TURN_LENGTH = 16 * PIECE_LENGTH;

interface Comparing {
  comparison: SealedComparison;
  source: BlobSource;
  at: number;
}

/** Files that are compared with versions in a sealed workspace, in the worker: nothing is fetched for it. */
export class SealedComparing {
  readonly #workspace: SealedWorkspace;
  readonly #running = new Map<number, Comparing>();
  #next = 1;

  constructor(workspace: SealedWorkspace) {
    this.#workspace = workspace;
  }

  begin({ node, version, file }: Calls['sealedCompare']['ask']): number {
    const comparison = this.#workspace.compare(node, version);
    this.#running.set(this.#next, { comparison, source: new BlobSource(file), at: 0 });
    return this.#next++;
  }

  /** Goes on for a turn; says what came of it once all is read. */
  goOn(number: number): boolean | null {
    const running = this.#running.get(number);
    if (!running) throw new Error('nothing is compared by that number');
    const { comparison, source } = running;
    const end = Math.min(source.size, running.at + TURN_LENGTH);
    while (running.at < end) {
      const piece = new Uint8Array(Math.min(PIECE_LENGTH, end - running.at));
      source.readAt(running.at, piece);
      comparison.push(piece);
      running.at += piece.length;
    }
    if (running.at < source.size) return null;
    // It is taken away by that.
    this.#running.delete(number);
    return comparison.finish();
  }

  end(number: number): void {
    this.#running.get(number)?.comparison.free();
    this.#running.delete(number);
  }

  free(): void {
    for (const number of this.#running.keys()) this.end(number);
  }
}
