// One round: look at both sides, plan, and do what is planned, each step checked at the moment it is done. A row of the merge base is
// written after what it speaks of has happened: cut off in between, the next round finds both sides equal, and remembers that.

import { ProblemError } from '@syncline/api';
import { endsRound, hasChangedHere, isOutdated } from './failures.ts';
import { heedHistory, noteHistory } from './history.ts';
import { doubtfulIn, leavesOut, lookUntilSure, missingIn, type Looked } from './looks.ts';
import { candidatesHere, movedThere, Moves } from './moves.ts';
import { isCopy } from './names.ts';
import {
  decide,
  hasLostAll,
  hasNothingOf,
  isMassDeletion,
  isRemoval,
  type Base,
  type Local,
  type Remote,
} from './plan.ts';
import { Changed, Refused, type Ports, type Reason, type Tree } from './ports.ts';
import { emptyReport, hasChanged, type Report } from './report.ts';
import { Steps } from './steps.ts';

/** How many files are on their way at once. */
const AT_ONCE = 3;
/** What is made may ask for something to go, and that for something to be made. */
const PASSES_MAX = 8;
/** Reading, comparing, keeping a copy and the rest: no place needs more steps in one pass. */
const STEPS_MAX = 8;
/** How often it is noted in a round that takes long how far the history is. */
const NOTE_MS = 30_000;

/** What a round would do: how many files and folders. */
export interface Outlook {
  up: number;
  down: number;
  /** Both sides have them: they are compared, and where they differ both are kept. */
  both: number;
}

/** What is known while a round goes on. */
export interface Trees {
  local: Map<string, Local>;
  remote: Map<string, Remote>;
  rows: Map<string, Base>;
  /** What is passed over on the server. */
  skippedThere: ReadonlyMap<string, Reason>;
}

export interface RoundOptions {
  signal: AbortSignal;
  /** How many that are absent somebody has said may go. */
  confirmed?: number;
  onProgress?: (report: Report) => void;
}

export const folderOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const lastOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);
export const below = (folder: string, name: string) => (folder === '' ? name : `${folder}/${name}`);
const depthOf = (path: string) => path.split('/').length;

/** Keeps a folder and one of a workspace equal. */
export class Engine {
  #remote: Tree<Remote> | null = null;
  /** How often the server had news. */
  #news = 0;
  /** Whether it was set back, until a round that has told it comes to its end. */
  #isSetBack = false;

  constructor(readonly ports: Ports) {}

  /** Has the server listed anew in the next round. */
  forgetRemote(): void {
    this.#news++;
    this.#remote = null;
  }

  async #list(rows: ReadonlyMap<string, Base>, signal: AbortSignal): Promise<Looked<Remote>> {
    if (this.#remote) return { tree: this.#remote, unsure: [] };
    let news = 0;
    const list = () => {
      news = this.#news;
      return this.ports.server.list(signal);
    };
    // It is listed folder by folder: what was moved meanwhile may be in none of them, and would be taken for deleted. News of that may be
    // late, so what is not there is looked for again. Whoever always has news is not waited for; the next round lists it anew.
    const isQuiet = () => news === this.#news;
    const missing = (tree: Tree<Remote>) => missingIn(tree, rows);
    const listed = await lookUntilSure(await list(), list, missing, isQuiet);
    if (listed.unsure.length === 0 && isQuiet()) this.#remote = listed.tree;
    return listed;
  }

  async round(options: RoundOptions): Promise<Report> {
    const { signal } = options;
    const report = emptyReport();
    const scan = () => this.ports.disk.scan(signal);
    const first = await scan();
    const isListed = this.#remote !== null;
    if (!isListed && (await heedHistory(this.ports, signal))) this.#isSetBack = true;
    report.isSetBack = this.#isSetBack;
    const rows = await this.ports.rows.all();
    const there = await this.#list(rows, signal);
    const here = await lookUntilSure(first, scan, (tree) => doubtfulIn(tree, rows));
    const [{ found: local, skipped: skippedHere }, listed] = [here.tree, there.tree];
    const skipped = new Map([...listed.skipped, ...skippedHere]);
    report.problems = [...skipped].map(([path, reason]) => ({ path, reason }));
    // What may be on its way is left alone until it has arrived.
    const unsure = [...there.unsure, ...here.unsure];
    report.isStale = unsure.length > 0;
    const isLeftOut = leavesOut(new Set([...skipped.keys(), ...unsure]));
    const trees = { local, remote: listed.found, rows, skippedThere: listed.skipped };
    const round = new Round(this.ports, trees, report, options, isLeftOut);
    try {
      // What was moved is not absent.
      await round.move();
      const absent = [...rows.keys()].filter((path) => !local.has(path) && !isLeftOut(path));
      const isAbsent = absent.length > 0;
      const isGone = isAbsent && hasLostAll(local, rows);
      const isOther = isAbsent && hasNothingOf(local, rows);
      const isMass = isMassDeletion(absent.length, rows.size, { isGone, isOther });
      // More may be absent by now than somebody was asked about.
      const isAsked = isMass && absent.length > (options.confirmed ?? 0);
      if (isAsked) report.asks = { absent: absent.length, all: rows.size };
      else await round.run();
      const isToNote = !isListed || hasChanged(report);
      if (isToNote && !(await noteHistory(this.ports, signal))) report.isStale = true;
    } catch (error) {
      // What was on its way may have arrived.
      this.#remote = null;
      throw error;
    }
    if (report.isStale) this.#remote = null;
    this.#isSetBack = false;
    report.copies = [...local.keys()].filter((path) => isCopy(lastOf(path))).sort();
    return report;
  }

  /** What a first round would do. Nothing is changed. */
  async outlook(signal: AbortSignal): Promise<Outlook> {
    const scan = await this.ports.disk.scan(signal);
    const { tree: listed } = await this.#list(new Map(), signal);
    const isLeftOut = leavesOut(new Map([...listed.skipped, ...scan.skipped]));
    const outlook = { up: 0, down: 0, both: 0 };
    for (const path of new Set([...scan.found.keys(), ...listed.found.keys()])) {
      if (isLeftOut(path)) continue;
      const [here, there] = [scan.found.get(path), listed.found.get(path)];
      if (!there) outlook.up++;
      else if (!here) outlook.down++;
      else if (here.kind === 'file') outlook.both++;
    }
    return outlook;
  }

  /** Forgets what is absent from the folder, so that it comes back. */
  async forgetAbsent(signal: AbortSignal): Promise<void> {
    const scan = await this.ports.disk.scan(signal);
    for (const path of (await this.ports.rows.all()).keys()) {
      if (!scan.found.has(path)) await this.ports.rows.delete(path);
    }
  }
}

class Round {
  readonly #steps: Steps;
  /** What has failed is left alone until the next round. */
  readonly #failed = new Set<string>();
  #notedMs: number;
  #hasProgress = false;

  constructor(
    ports: Ports,
    readonly trees: Trees,
    readonly report: Report,
    readonly options: RoundOptions,
    readonly isLeftOut: (path: string) => boolean,
  ) {
    this.#steps = new Steps(ports, trees, report, options.signal);
    this.#notedMs = ports.now();
  }

  async run(): Promise<void> {
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      this.#hasProgress = false;
      const paths = this.#paths();
      const isFolder = (path: string) =>
        (this.trees.local.get(path) ?? this.trees.remote.get(path))?.kind === 'folder';
      for (const path of paths.filter(isFolder)) await this.#settle(path, false);
      await this.#allAtOnce(paths.filter((path) => !isFolder(path)));
      for (const path of paths.toReversed()) await this.#settle(path, true);
      if (!this.#hasProgress) return;
    }
  }

  /** Moves first what was moved on one side: the rest would take it for a deletion and a new file. */
  async move(): Promise<void> {
    const { trees, report, isLeftOut, options } = this;
    const moves = new Moves(this.#steps.ports, trees, report, options.signal, this.#steps);
    for (const move of movedThere(trees, isLeftOut)) await this.#try(() => moves.here(move));
    for (const candidates of candidatesHere(trees, isLeftOut)) {
      await this.#try(async () => {
        for (const move of await moves.certain(candidates)) await moves.there(move);
      });
    }
  }

  /** Where a move does not come about, the rest does what is to be done. */
  async #try(deed: () => Promise<unknown>): Promise<void> {
    this.options.signal.throwIfAborted();
    try {
      await deed();
      this.options.onProgress?.(this.report);
    } catch (error) {
      if (endsRound(error, this.options.signal)) throw error;
      if (isOutdated(error)) this.report.isStale = true;
    }
  }

  /** All places that anybody knows, a folder before what is in it. */
  #paths(): string[] {
    const { local, remote, rows } = this.trees;
    const all = new Set([...local.keys(), ...remote.keys(), ...rows.keys()]);
    const known = [...all].filter((path) => !this.isLeftOut(path));
    return known.sort((a, b) => depthOf(a) - depthOf(b) || (a < b ? -1 : Number(a > b)));
  }

  async #allAtOnce(paths: string[]): Promise<void> {
    const waiting = paths.values();
    let isOver = false;
    const work = async () => {
      for (const path of waiting) {
        if (isOver) return;
        await this.#settle(path, false).catch((error: unknown) => {
          isOver = true;
          throw error;
        });
      }
    };
    // The first failure ends the round when the others have ended, too: nothing goes on behind its back.
    const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #settle(path: string, isRemoving: boolean): Promise<void> {
    for (let step = 0; step < STEPS_MAX && !this.#failed.has(path); step++) {
      this.options.signal.throwIfAborted();
      const { local, remote, rows } = this.trees;
      const operation = decide(local.get(path), remote.get(path), rows.get(path));
      if (operation === null || (isRemoval(operation) && !isRemoving)) return;
      try {
        const isDone = await this.#steps.run(operation, path);
        if (!isDone) return;
        this.#hasProgress = true;
        this.options.onProgress?.(this.report);
      } catch (error) {
        if (endsRound(error, this.options.signal)) throw error;
        this.#fail(path, error);
      }
      await this.#note();
    }
  }

  /** A round may take days, and be cut off. */
  async #note(): Promise<void> {
    const { ports } = this.#steps;
    if (ports.now() - this.#notedMs < NOTE_MS) return;
    this.#notedMs = ports.now();
    if (!(await noteHistory(ports, this.options.signal))) throw new Changed('there');
  }

  #fail(path: string, error: unknown): void {
    this.#failed.add(path);
    if (isOutdated(error)) this.report.isStale = true;
    // What does not fit now may never fit.
    const isLasting =
      !isOutdated(error) || (error instanceof ProblemError && error.code === 'conflict');
    if (hasChangedHere(error)) this.report.changed.push(path);
    if (!isLasting) return;
    if (error instanceof Refused) this.report.problems.push({ path, reason: error.reason });
    else this.report.problems.push({ path, reason: 'failed', error });
  }
}
