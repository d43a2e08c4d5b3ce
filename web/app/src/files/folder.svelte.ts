// A folder as the server has it, kept up to date by its events.

import { listen, ProblemError, type Node, type NodePath, type SynclineClient } from '@syncline/api';
import { wait } from '../transfers/wait.ts';

const RECONNECTING_AFTER_MS = 3_000;

export class Folder {
  nodes = $state.raw<Node[]>([]);
  /** Whether all of it has been read once. */
  isComplete = $state(false);
  failure = $state.raw<unknown>();
  /** The workspace that it is, where it is one of its own: what is in it is there. */
  mounted = $state<string | null>(null);
  /** Whether events have been missing for a while. */
  isOffline = $state(false);
  /** The newest entry of the log that was heard of. */
  seq = $state(0);

  #path: NodePath | null = null;
  #reading = new AbortController();
  #isStale = false;
  #running: Promise<void> | null = null;

  constructor(
    readonly client: SynclineClient,
    readonly workspace: string,
  ) {}

  /** Shows another folder: its first page as soon as it is there. */
  async open(path: NodePath): Promise<void> {
    this.#reading.abort();
    this.#reading = new AbortController();
    this.#path = path;
    this.#running = null;
    this.nodes = [];
    this.isComplete = false;
    this.failure = undefined;
    this.mounted = null;
    await this.refresh();
  }

  /** Reads the folder again, and returns when all is seen that was there when it was called. */
  refresh(): Promise<void> {
    if (this.#running) {
      this.#isStale = true;
      return this.#running;
    }
    const { signal } = this.#reading;
    const running = this.#readUntilFresh(signal).finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }

  async #readUntilFresh(signal: AbortSignal): Promise<void> {
    try {
      do {
        this.#isStale = false;
        const began = performance.now();
        await this.#read(signal);
        // A long list is not read without a pause while somebody writes into the folder.
        if (this.#needsAnotherLook()) await wait(performance.now() - began, signal);
      } while (this.#needsAnotherLook() && !signal.aborted);
    } catch (error) {
      const mounted = await this.#mountedBy(error, signal);
      if (signal.aborted) return;
      this.mounted = mounted;
      this.failure = mounted ? undefined : error;
      // What the server refuses to show is not shown from memory; what it cannot be asked for is.
      if (error instanceof ProblemError && !error.isPassing) this.nodes = [];
    }
  }

  /** Looks whether the folder was refused since it is a workspace of its own. */
  async #mountedBy(error: unknown, signal: AbortSignal): Promise<string | null> {
    if (!(error instanceof ProblemError) || error.code !== 'conflict') return null;
    const looking = this.client.node(this.workspace, this.#path ?? '', signal);
    return (await looking.catch(() => null))?.mounted ?? null;
  }

  /** Whether something has changed since the reading began; it does so while others wait. */
  #needsAnotherLook(): boolean {
    return this.#isStale;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const all: Node[] = [];
    for await (const page of this.client.folder(this.workspace, this.#path ?? '', signal)) {
      signal.throwIfAborted();
      if (all.length === 0 && !this.isComplete) this.nodes = page;
      all.push(...page);
    }
    this.nodes = all;
    this.isComplete = true;
    this.failure = undefined;
  }

  /** Follows the events of the workspace until the signal says stop. */
  async follow(signal: AbortSignal): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await listen(
      this.client,
      this.workspace,
      {
        onEvent: ({ seq }) => {
          // The first one, too: something may have come between the reading and the listening.
          const isNews = seq !== this.seq;
          this.seq = seq;
          if (isNews) void this.refresh();
        },
        onState: (isConnected) => {
          clearTimeout(timer);
          if (isConnected) this.isOffline = false;
          else timer = setTimeout(() => (this.isOffline = true), RECONNECTING_AFTER_MS);
        },
      },
      signal,
    );
    clearTimeout(timer);
    // The server has nothing more to tell: say why.
    if (!signal.aborted) await this.refresh();
  }
}
