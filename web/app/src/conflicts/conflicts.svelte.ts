// The list of conflicts of a workspace, page by page, the newest first; and who made the versions in it.

import type { Conflict } from '@syncline/api';
import { PagedList, type Page } from '../shell/paged-list.svelte.ts';
import { openConflicts } from './open.svelte.ts';
import type { ConflictsOf, Maker } from './source.ts';

/** So many are shown before somebody asks for more: each has two files, of which more is asked for. */
export const PAGE = 20;

export class Conflicts extends PagedList<Conflict> {
  /** How many there are on all pages. */
  count = $state(0);
  /** The versions that stand against each other, by node and number, as far as it is known who made them. */
  makers = $state.raw<ReadonlyMap<string, Maker>>(new Map());
  #isAsking = false;

  constructor(
    readonly source: ConflictsOf,
    readonly workspace: string,
  ) {
    super();
  }

  override async refresh(): Promise<void> {
    await super.refresh();
    void this.#findMakers();
  }

  override async more(): Promise<void> {
    await super.more();
    void this.#findMakers();
  }

  protected override async page(cursor: string | undefined): Promise<Page<Conflict>> {
    const found = await this.source.page(cursor, PAGE);
    this.count = found.count;
    openConflicts.say(this.workspace, found.count, this.source.address);
    return { items: found.conflicts, next: found.next };
  }

  /** Asks who made what is shown, one after the other: the log is read for each. */
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
      const maker = await this.source.maker(side).catch(() => null);
      if (maker) this.makers = new Map(this.makers).set(keyOf(side), maker);
    }
    this.#isAsking = false;
  }
}

/** What one side of a conflict is called among the makers. */
export function keyOf({ id, version }: { id: string; version: number }): string {
  return `${id}.${version}`;
}
