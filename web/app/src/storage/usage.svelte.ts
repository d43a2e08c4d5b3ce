// What a workspace holds, kept up to date while it is shown.

import { listen, ProblemError, type SynclineClient, type Usage } from '@syncline/api';

/** How long to wait for changes that come together, and how long where the server tells of some time ago, in ms. */
const PAUSE = 500;
const LONG_PAUSE = 10_000;

export class ShownUsage {
  usage = $state.raw<Usage>();
  failure = $state.raw<unknown>();
  #wanted = 0;
  #isBusy = false;
  #isOver = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly client: SynclineClient,
    readonly workspace: string,
  ) {}

  async load(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const wanted = this.#wanted;
    try {
      const params = { workspace: this.workspace };
      this.usage = await this.client.call('GET /workspaces/{workspace}/usage', { params });
      this.failure = undefined;
    } catch (error) {
      this.failure = error;
      if (error instanceof ProblemError && !error.isPassing) this.usage = undefined;
    } finally {
      this.#isBusy = false;
    }
    const seq = this.usage?.seq ?? Infinity;
    if (seq < this.#wanted) this.#later(seq < wanted ? LONG_PAUSE : PAUSE);
  }

  /** Loads anew whenever something changes, until it is stopped. */
  async follow(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => {
      this.#isOver = true;
      clearTimeout(this.#timer);
    });
    const onEvent = ({ seq }: { seq: number }) => {
      this.#wanted = seq;
      if (this.usage && this.usage.seq < seq) this.#later(PAUSE);
    };
    await listen(this.client, this.workspace, { onEvent }, signal);
  }

  #later(pause: number): void {
    clearTimeout(this.#timer);
    if (!this.#isOver) this.#timer = setTimeout(() => void this.load(), pause);
  }
}
