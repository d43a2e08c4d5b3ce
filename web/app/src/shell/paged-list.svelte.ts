// A list that a server tells page by page, and that changes while it is shown.

import { ProblemError } from '@syncline/api';

export interface Page<Item> {
  items: Item[];
  /** Where the list goes on; nothing at its end. */
  next: string | null;
}

export abstract class PagedList<Item> {
  list = $state.raw<Item[]>([]);
  /** Whether the first page has been read once. */
  isRead = $state(false);
  isBusy = $state(false);
  failure = $state.raw<unknown>();
  /** Where the list goes on; nothing at its end. */
  next = $state<string | null>(null);
  #isStale = false;
  /** Whether what is read is one more page. */
  #isMore = false;
  /** Whether one more was asked for while the list was read anew. */
  #wantsMore = false;

  /** Asks for one page; for the first one without a cursor. */
  protected abstract page(cursor: string | undefined): Promise<Page<Item>>;

  /** Reads as much anew as was shown, one page at least. */
  async refresh(): Promise<void> {
    if (this.isBusy) {
      this.#isStale = true;
      return;
    }
    await this.#read(this.list.length, null, []);
  }

  /** Reads one more page; where the list is just read anew, after that. */
  async more(): Promise<void> {
    if (this.isBusy) {
      this.#wantsMore = !this.#isMore;
      return;
    }
    if (this.next === null) return;
    this.#isMore = true;
    await this.#read(this.list.length + 1, this.next, this.list);
  }

  async #read(least: number, cursor: string | null, before: Item[]): Promise<void> {
    this.isBusy = true;
    this.#isStale = false;
    try {
      let list = before;
      let next = cursor;
      do {
        const page = await this.page(next ?? undefined);
        list = [...list, ...page.items];
        next = page.next;
        // A page may have nothing in it, and others behind it.
      } while ((list.length < least || list.length === 0) && next !== null);
      [this.list, this.next, this.isRead] = [list, next, true];
      this.failure = undefined;
    } catch (error) {
      this.failure = error;
      // What the server refuses to show is not shown from memory; what it cannot be asked for is.
      if (error instanceof ProblemError && !error.isPassing) this.list = [];
    } finally {
      this.isBusy = false;
      this.#isMore = false;
    }
    if (this.#hasNews()) await this.refresh();
    if (this.#wantsMore) {
      this.#wantsMore = false;
      await this.more();
    }
  }

  /** Whether something has changed since the reading began; it does so while others wait. */
  #hasNews(): boolean {
    return this.#isStale;
  }
}
