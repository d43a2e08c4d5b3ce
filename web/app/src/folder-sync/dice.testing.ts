/** Random numbers that are the same for the same seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2654435761 + 12345) >>> 0;
  }

  below(count: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * count);
  }

  hits(oneIn: number): boolean {
    return this.below(oneIn) === 0;
  }

  pick<One>(from: readonly One[]): One | undefined {
    return from[this.below(from.length)];
  }
}
