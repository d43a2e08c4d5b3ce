// The rows of a list in the order that somebody wants. A long one is sorted in slices, so that the page never stands still for it; until that is
// done it shows what it did.

import type { Sorting } from '@syncline/file-grid';
import { tick, untrack } from 'svelte';
import type { Listed } from './kinds.ts';
import { orderOf, sortInSteps, sortNodes } from './sort.ts';

/** A list that is no longer is sorted at once, in some ten milliseconds. */
export const SHORT = 2_000;
/** How long a slice takes, so that a frame has room beside it. */
const SLICE_MS = 8;

/** Lets others have their turn; a page that nobody sees, too, where a timer would wait for a second. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

interface Wanted<Row> {
  nodes: readonly Row[];
  sorting: Sorting;
  locale: string;
  /** Where they are, and how they are to be sorted. */
  how: string;
}

export class Sorted<Row extends Listed> {
  rows = $state.raw<readonly Row[]>([]);
  /** Whether these are all that there is. */
  isSettled = $state(true);
  readonly #keyOf: (row: Row) => string;
  /** Where `rows` are, and how they are sorted. */
  #how = '';
  #folder = '';
  /** What is to be shown after that which is being sorted. */
  #wanted: Wanted<Row> | null = null;
  /** What is being sorted. */
  #current: Wanted<Row> | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(keyOf: (row: Row) => string) {
    this.#keyOf = keyOf;
  }

  /** Shows these nodes of a folder as soon as they are in order. Belongs into an effect before the page is drawn. */
  show(folder: string, nodes: readonly Row[], sorting: Sorting, locale: string): void {
    untrack(() => {
      const wanted = { nodes, sorting, locale, how: JSON.stringify([folder, sorting, locale]) };
      const isLong = nodes.length > SHORT;
      // A list that changes again and again is sorted to the end each time, so that something of it is seen.
      if (!isLong || this.#current?.how !== wanted.how) this.#current = null;
      this.#wanted = isLong ? wanted : null;
      this.isSettled = !isLong;
      // What is in another folder is not shown here.
      if (isLong && folder !== this.#folder) this.rows = [];
      this.#folder = folder;
      if (!isLong) this.#take(sortNodes(nodes, sorting, locale), wanted.how);
      else if (!this.#current) this.#running = this.#sortAll();
    });
  }

  /** Returns when all that there is now is shown. */
  async settled(): Promise<void> {
    await tick();
    await this.#running;
    await tick();
  }

  #take(rows: readonly Row[], how: string): void {
    [this.rows, this.#how] = [rows, how];
  }

  async #sortAll(): Promise<void> {
    while (this.#wanted) {
      const current = this.#wanted;
      [this.#current, this.#wanted] = [current, null];
      const rows = await this.#sort(current);
      // Somebody wants something else, and has begun with that.
      if (!rows || this.#current !== current) return;
      this.#take(rows, current.how);
    }
    this.#current = null;
    this.isSettled = true;
  }

  /** Sorts a list in slices; nothing where it is not wanted any more. */
  async #sort(current: Wanted<Row>): Promise<Row[] | null> {
    const { nodes, sorting, locale, how } = current;
    const known = { rows: how === this.#how ? this.rows : [], keyOf: this.#keyOf };
    const steps = sortInSteps(nodes, orderOf(sorting, locale), known);
    let start = performance.now();
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      if (performance.now() - start < SLICE_MS) continue;
      await turn();
      if (this.#current !== current) return null;
      start = performance.now();
    }
  }
}
