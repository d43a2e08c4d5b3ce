// The list of conflicts of a workspace, page by page, the newest first; and who made the versions in it.

import { ProblemError, type Conflict, type SynclineClient, type Version } from '@syncline/api';
import { openConflicts } from './open.svelte.ts';

/** So many are shown before somebody asks for more: each has two files, of which more is asked for. */
export const PAGE = 20;

export class Conflicts {
  list = $state.raw<Conflict[]>([]);
  /** How many there are on all pages. */
  count = $state(0);
  /** Whether the first page has been read once. */
  isRead = $state(false);
  isBusy = $state(false);
  failure = $state.raw<unknown>();
  /** Where the list goes on; nothing at its end. */
  next = $state<string | null>(null);
  /** The versions that stand against each other, by node and number, as far as it is known who made them. */
  makers = $state.raw<ReadonlyMap<string, Version>>(new Map());
  #isStale = false;
  #isAsking = false;

  constructor(
    readonly client: SynclineClient,
    readonly workspace: string,
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
    await this.#read(0, this.next, this.list);
  }

  async #read(least: number, cursor: string | null, before: Conflict[]): Promise<void> {
    this.isBusy = true;
    this.#isStale = false;
    try {
      let list = before;
      let next = cursor;
      let count: number;
      do {
        const page = await this.client.call('GET /workspaces/{workspace}/conflicts', {
          params: { workspace: this.workspace },
          query: { cursor: next ?? undefined, limit: PAGE },
        });
        list = [...list, ...page.conflicts];
        ({ next, count } = page);
      } while (list.length < least && next !== null);
      [this.list, this.next, this.count] = [list, next, count];
      this.isRead = true;
      this.failure = undefined;
      openConflicts.say(this.workspace, count);
    } catch (error) {
      this.failure = error;
      // What the server refuses to show is not shown from memory; what it cannot be asked for is.
      if (error instanceof ProblemError && !error.isPassing) this.list = [];
    } finally {
      this.isBusy = false;
    }
    if (this.#hasNews()) await this.refresh();
    else void this.#findMakers();
  }

  /** Asks who made what is shown, one after the other: the server reads the log for each. */
  async #findMakers(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const tried = new Set<string>();
    const wanted = () =>
      this.list
        .flatMap(({ copy, original }) => [copy, ...(original ? [original] : [])])
        .find((side) => !this.makers.has(keyOf(side)) && !tried.has(keyOf(side)));
    for (let side = wanted(); side; side = wanted()) {
      tried.add(keyOf(side));
      const { path, id, version } = side;
      const found = await this.client.versions(this.workspace, path).catch(() => null);
      const maker = found?.versions.find((one) => one.version === version);
      if (maker) this.makers = new Map(this.makers).set(keyOf({ id, version }), maker);
    }
    this.#isAsking = false;
  }

  /** Whether something has changed since the reading began; it does so while others wait. */
  #hasNews(): boolean {
    return this.#isStale;
  }
}

/** What one side of a conflict is called among the makers. */
export function keyOf({ id, version }: { id: string; version: number }): string {
  return `${id}.${version}`;
}
