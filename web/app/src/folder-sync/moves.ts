// Files that were moved or renamed on one side since both agreed last, and are moved on the other: so a file keeps its history, and does not
// travel again. Only where it is certain, by what was there and what is; all else is a deletion and a new file, which loses nothing either.

import { folderOf, type Trees } from './engine.ts';
import type { Local } from './plan.ts';
import { Refused, type Ports } from './ports.ts';
import type { Report } from './report.ts';
import { isSameStat, rowOf } from './stats.ts';
import type { Steps } from './steps.ts';

export interface Move {
  from: string;
  to: string;
}

type LeavesOut = (path: string) => boolean;

/** Files that lie elsewhere on the server, and where they were in the folder: nodes tell, which are never two. */
export function movedThere({ local, remote, rows }: Trees, isLeftOut: LeavesOut): Move[] {
  const places = new Map<string, string>();
  for (const [path, { kind, node }] of remote) if (kind === 'file') places.set(node, path);
  const found: Move[] = [];
  for (const [from, { kind, node }] of rows) {
    const to = places.get(node);
    if (kind !== 'file' || to === undefined || to === from) continue;
    const isFree = !remote.has(from) && !local.has(to) && !rows.has(to);
    const isHere = local.get(from)?.kind === 'file';
    if (isFree && isHere && !isLeftOut(from) && !isLeftOut(to)) found.push({ from, to });
  }
  return found;
}

/** Files that are gone from the folder and unchanged on the server, and new ones that are as long: one may be the other. */
export interface Candidates {
  gone: string[];
  fresh: string[];
}

/** Who may be whom, by length. A file with nothing in it is like any other one. */
export function candidatesHere({ local, remote, rows }: Trees, isLeftOut: LeavesOut): Candidates[] {
  const bySize = new Map<number, Candidates>();
  for (const [path, row] of rows) {
    const there = remote.get(path);
    const isAsBefore = there?.node === row.node && there.version === row.version;
    if (row.kind !== 'file' || row.size === 0 || row.digest === '' || !isAsBefore) continue;
    if (local.has(path) || isLeftOut(path)) continue;
    const found = bySize.get(row.size) ?? { gone: [], fresh: [] };
    found.gone.push(path);
    bySize.set(row.size, found);
  }
  for (const [path, { kind, size }] of local) {
    const isNew = !rows.has(path) && !remote.has(path);
    if (kind === 'file' && isNew && !isLeftOut(path)) bySize.get(size)?.fresh.push(path);
  }
  return [...bySize.values()].filter(({ fresh }) => fresh.length > 0);
}

/** Of files with the same content one is gone and one is new. */
function pairsOf(gone: Map<string, string[]>, fresh: Map<string, string[]>): Move[] {
  return [...gone].flatMap(([digest, from]) => {
    const to = fresh.get(digest) ?? [];
    const [[one], [other]] = [from, to];
    if (from.length !== 1 || to.length !== 1 || one === undefined || other === undefined) return [];
    return [{ from: one, to: other }];
  });
}

function add(map: Map<string, string[]>, digest: string, path: string): void {
  map.set(digest, [...(map.get(digest) ?? []), path]);
}

/** Carries moves out. What happens in between leaves nothing worse than a deletion and a new file would. */
export class Moves {
  constructor(
    readonly ports: Ports,
    readonly trees: Trees,
    readonly report: Report,
    readonly signal: AbortSignal,
    readonly steps: Steps,
  ) {}

  /** Moves on the disk what was moved on the server; says whether it did. */
  async here({ from, to }: Move): Promise<boolean> {
    const { local, remote, rows } = this.trees;
    const [here, there, row] = [local.get(from), remote.get(to), rows.get(from)];
    if (!here || !there || !row) return false;
    const isChanged = !isSameStat(here, row) && (await this.#digest(from, here)) !== row.digest;
    if (isChanged || !(await this.#hasContent(from, here, to))) return false;
    await this.steps.ensureHere(folderOf(to));
    if (local.has(to)) return false;
    await this.ports.disk.move(from, to, here);
    local.delete(from);
    local.set(to, { ...here, compared: null });
    await this.steps.remember(to, rowOf(there, this.steps.statOf(here), row.digest));
    await this.steps.forget(from);
    this.report.moved++;
    return true;
  }

  async #digest(path: string, here: Local): Promise<string> {
    return here.digest ?? this.steps.read(path, here);
  }

  /** Whether a file has the content of the version that is somewhere else by now: a move may come with an edit. */
  async #hasContent(from: string, here: Local, to: string): Promise<boolean> {
    const there = this.trees.remote.get(to);
    if (!there || there.size !== here.size) return false;
    return this.ports.server.has(to, there, await this.steps.file(from, here), this.signal);
  }

  /** Which of the candidates were moved in the folder; nothing where one of them cannot be read. */
  async certain({ gone, fresh }: Candidates): Promise<Move[]> {
    const [before, now] = [new Map<string, string[]>(), new Map<string, string[]>()];
    for (const path of gone) add(before, this.trees.rows.get(path)?.digest ?? '', path);
    for (const path of fresh) {
      const here = this.trees.local.get(path);
      if (here) add(now, await this.#digest(path, here), path);
    }
    return pairsOf(before, now);
  }

  /** Moves on the server what was moved in the folder. */
  async there({ from, to }: Move): Promise<void> {
    const { local, remote } = this.trees;
    const [here, there] = [local.get(to), remote.get(from)];
    if (!here || !there || here.digest === null) return;
    await this.steps.ensureThere(folderOf(to));
    if (remote.has(to)) throw new Refused('taken');
    const moved = await this.ports.server.move(from, to, there, this.signal);
    remote.delete(from);
    remote.set(to, moved);
    await this.steps.remember(to, rowOf(moved, this.steps.statOf(here), here.digest));
    await this.steps.forget(from);
    this.report.moved++;
  }
}
