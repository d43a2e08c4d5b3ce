// Copies are marked on the server as what they are: one side of a conflict, so that every device and the list of conflicts know them.

import { folderOf, below, lastOf } from './engine.ts';
import { endsRound } from './failures.ts';
import { originalName } from './names.ts';
import type { Base, Remote } from './plan.ts';
import type { Ports } from './ports.ts';

export class Marks {
  readonly #kept = new Map<string, { original: Remote; base: number }>();

  constructor(
    readonly ports: Omit<Ports, 'disk'>,
    readonly signal: AbortSignal,
  ) {}

  /** Notes beside what a copy was kept, and what both were made from. */
  note(copy: string, original: Remote | undefined, row: Base | undefined): void {
    if (original) this.#kept.set(copy, { original, base: row?.version ?? 0 });
  }

  /** Marks what has just been put where nothing was, if it is a copy of ours; returns what is there then. */
  async mark(path: string, put: Remote, there: ReadonlyMap<string, Remote>): Promise<Remote> {
    const kept = this.#kept.get(path) ?? this.#byName(path, there);
    if (!kept) return put;
    try {
      return await this.ports.server.mark(path, put, kept.original, kept.base, this.signal);
    } catch (error) {
      // Then it is a file like any other, with a name that says what it is.
      if (endsRound(error, this.signal)) throw error;
      return put;
    }
  }

  /** What was kept before a round broke off is known by its name alone. */
  #byName(path: string, there: ReadonlyMap<string, Remote>) {
    const name = originalName(lastOf(path), this.ports.label);
    const original = name === null ? undefined : there.get(below(folderOf(path), name));
    return original?.kind === 'file' ? { original, base: 0 } : undefined;
  }
}
