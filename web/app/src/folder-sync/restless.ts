// Files that change whenever they are to be sent, as a mailbox or the disk of a virtual machine: each round leaves them for the next one, and
// somebody has to hear of that.

import type { Problem } from './report.ts';

export class Restless {
  /** In how many rounds, one after the other, each has changed. */
  #rounds = new Map<string, number>();

  constructor(
    /** So often it is nothing to speak of. */
    readonly max: number,
  ) {}

  /** Takes note of what has changed meanwhile in a round; returns what has in too many. */
  note(changed: readonly string[]): Problem[] {
    const before = this.#rounds;
    this.#rounds = new Map(changed.map((path) => [path, (before.get(path) ?? 0) + 1]));
    const tooOften = [...this.#rounds].filter(([, rounds]) => rounds > this.max);
    return tooOften.map(([path]) => ({ path, reason: 'changing' }));
  }
}
