// The list of what was deleted in a workspace, page by page, the newest first.

import { ProblemError, type DeletedNode, type SynclineClient } from '@syncline/api';

export class Trash {
  nodes = $state.raw<DeletedNode[]>([]);
  /** Whether the first page has been read once. */
  isRead = $state(false);
  isBusy = $state(false);
  failure = $state.raw<unknown>();
  /** Where the list goes on; nothing at its end. */
  next = $state<string | null>(null);
  #isStale = false;

  constructor(
    readonly client: SynclineClient,
    readonly workspace: string,
    /** How many nodes a page has at most; as many as the server likes by default. */
    readonly pageLength?: number,
  ) {}

  /** Reads as much anew as was shown, one page at least. */
  async refresh(): Promise<void> {
    if (this.isBusy) {
      this.#isStale = true;
      return;
    }
    await this.#read(this.nodes.length, null, []);
  }

  /** Reads one more page. */
  async more(): Promise<void> {
    if (this.isBusy || this.next === null) return;
    await this.#read(0, this.next, this.nodes);
  }

  async #read(least: number, cursor: string | null, before: DeletedNode[]): Promise<void> {
    this.isBusy = true;
    this.#isStale = false;
    try {
      let nodes = before;
      let next = cursor;
      do {
        const page = await this.client.call('GET /workspaces/{workspace}/deleted', {
          params: { workspace: this.workspace },
          query: { cursor: next ?? undefined, limit: this.pageLength },
        });
        nodes = [...nodes, ...page.nodes];
        next = page.next;
      } while (nodes.length < least && next !== null);
      this.nodes = nodes;
      this.next = next;
      this.isRead = true;
      this.failure = undefined;
    } catch (error) {
      this.failure = error;
      // What the server refuses to show is not shown from memory; what it cannot be asked for is.
      if (error instanceof ProblemError && !error.isPassing) this.nodes = [];
    } finally {
      this.isBusy = false;
    }
    if (this.#hasNews()) await this.refresh();
  }

  /** Whether something has changed since the reading began; it does so while others wait. */
  #hasNews(): boolean {
    return this.#isStale;
  }
}
