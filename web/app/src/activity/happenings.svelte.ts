// What happened in a workspace, page by page, the newest first.

import { ProblemError, type Activity, type SynclineClient } from '@syncline/api';

export class Happenings {
  list = $state.raw<Activity[]>([]);
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
    /** How many entries a page has at most. */
    readonly pageLength = 50,
  ) {}

  /** Reads as much anew as was shown, one page at least. */
  async refresh(): Promise<void> {
    if (this.isBusy) {
      this.#isStale = true;
      return;
    }
    await this.#read(this.list.length, null, []);
  }

  /** Reads one more page. */
  async more(): Promise<void> {
    if (this.isBusy || this.next === null) return;
    await this.#read(this.list.length + 1, this.next, this.list);
  }

  async #read(least: number, cursor: string | null, before: Activity[]): Promise<void> {
    this.isBusy = true;
    this.#isStale = false;
    try {
      let list = before;
      let next = cursor;
      do {
        const page = await this.client.call('GET /workspaces/{workspace}/activity', {
          params: { workspace: this.workspace },
          query: { cursor: next ?? undefined, limit: this.pageLength },
        });
        list = [...list, ...page.activity];
        next = page.next;
        // A stretch of the log may have nothing in it that people know.
      } while ((list.length < least || list.length === 0) && next !== null);
      [this.list, this.next, this.isRead] = [list, next, true];
      this.failure = undefined;
    } catch (error) {
      this.failure = error;
      // What the server refuses to show is not shown from memory; what it cannot be asked for is.
      if (error instanceof ProblemError && !error.isPassing) this.list = [];
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
