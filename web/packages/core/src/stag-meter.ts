/** What a page missed of its ticks. All times are milliseconds. */
export interface Stagnation {
  ticks: number;
  /** The longest time from one tick to the next. */
  longest: number;
  /** How many ticks came so late that the one behind them was due. */
  missed: number;
}

/** Prints a timestamp every 100 ms, and measures the gaps between them: where a page stands still, they grow. */
export class StagMeter {
  readonly #print: (timestamp: number) => void;
  readonly #every: number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #times: number[] = [];

  constructor(print: (timestamp: number) => void = () => undefined, every = 100) {
    this.#print = print;
    this.#every = every;
  }

  start(): void {
    this.stop();
    this.#times = [performance.now()];
    this.#timer = setInterval(() => this.#tick(), this.#every);
  }

  stop(): Stagnation {
    clearInterval(this.#timer);
    // Whoever stands still when it is stopped has not ticked since.
    const times = [...this.#times, performance.now()];
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time));
    return {
      ticks: Math.max(0, this.#times.length - 1),
      longest: Math.max(0, ...gaps),
      missed: gaps.filter((gap) => gap >= 2 * this.#every).length,
    };
  }

  #tick(): void {
    const now = performance.now();
    this.#times.push(now);
    this.#print(now);
  }
}
