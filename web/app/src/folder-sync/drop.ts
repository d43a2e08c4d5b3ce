// Where the browser gives no handle of a folder: it is dropped again, and what is new in it goes up. The decisions are those of the planner;
// nothing comes down, and nothing is deleted on either side.

import type { Chosen } from '../transfers/dropped.ts';
import { below, folderOf, lastOf } from './engine.ts';
import { endsRound } from './failures.ts';
import { heedHistory } from './history.ts';
import { Marks } from './marks.ts';
import { conflictName, isName, isOwn } from './names.ts';
import { decide, type Base, type Local, type Remote } from './plan.ts';
import { Refused, type Ports, type Reason, type Tree } from './ports.ts';
import { emptyReport, type Report } from './report.ts';
import { statOfRow } from './stats.ts';

const AT_ONCE = 3;

/** What a drop did. */
export interface DropReport extends Report {
  unchanged: number;
  /** How many files were looked at, and how many there are. */
  done: number;
  all: number;
}

/** The one folder that was dropped, and its files by their paths in it; nothing where it was something else. */
export function folderOfDrop(
  chosen: readonly Chosen[],
): { name: string; files: Map<string, File> } | null {
  const name = chosen[0]?.folders[0];
  if (name === undefined || chosen.some(({ folders }) => folders[0] !== name)) return null;
  const files = new Map<string, File>();
  for (const { file, folders } of chosen) {
    // A folder with nothing in it has nothing to send.
    if (file) files.set([...folders.slice(1), file.name].join('/'), file);
  }
  return { name, files };
}

/** Sends what is new in a folder that was dropped. */
export async function sendDropped(
  ports: Omit<Ports, 'disk'>,
  files: Map<string, File>,
  signal: AbortSignal,
  onProgress: (report: DropReport) => void,
): Promise<DropReport> {
  const report = { ...emptyReport(), unchanged: 0, done: 0, all: 0 };
  const wanted = [...files].filter(([path]) => !path.split('/').some(isOwn));
  report.all = wanted.length;
  report.isSetBack = await heedHistory(ports, signal);
  const tree = await ports.server.list(signal);
  const drop = new Drop(ports, tree, await ports.rows.all(), report, signal);
  const waiting = wanted.values();
  const work = async () => {
    for (const [path, file] of waiting) {
      await drop.send(path, file);
      report.done++;
      onProgress({ ...report });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  return report;
}

class Drop {
  readonly #folders = new Map<string, Promise<void>>();
  readonly #marks: Marks;

  constructor(
    readonly ports: Omit<Ports, 'disk'>,
    readonly tree: Tree<Remote>,
    readonly rows: Map<string, Base>,
    readonly report: DropReport,
    readonly signal: AbortSignal,
  ) {
    this.#marks = new Marks(ports, signal);
  }

  async send(path: string, file: File): Promise<void> {
    try {
      await this.#send(path, file);
    } catch (error) {
      // What one file has to do with is no matter of the others; a server that is away is.
      if (!(error instanceof Refused) && endsRound(error, this.signal)) throw error;
      if (error instanceof Refused) this.#skip(path, error.reason);
      else this.report.problems.push({ path, reason: 'failed', error });
    }
  }

  #skip(path: string, reason: Reason): void {
    this.report.problems.push({ path, reason });
  }

  async #send(path: string, file: File): Promise<void> {
    if (!path.split('/').every(isName)) throw new Refused('name');
    for (let at = path; at !== ''; at = folderOf(at)) {
      const reason = this.tree.skipped.get(at);
      if (reason) throw new Refused(reason);
    }
    const local = localOf(file, this.ports.now());
    const base = this.rows.get(path);
    for (;;) {
      const there = this.tree.found.get(path);
      const operation = decide(local, there, base);
      if (operation === 'read') {
        local.digest = await this.ports.digest(file, this.signal);
      } else if (operation === 'compare' && there) {
        const isEqual = await this.ports.server.has(path, there, file, this.signal);
        local.compared = { etag: there.etag, isEqual };
      } else if (operation === null || operation === 'refresh' || operation === 'accept') {
        if (operation !== null && there) await this.#remember(path, local, file, there);
        this.report.unchanged++;
        return;
      } else {
        return this.#change(operation, path, local, file, there);
      }
    }
  }

  async #change(
    operation: string,
    path: string,
    local: Local,
    file: File,
    there: Remote | undefined,
  ): Promise<void> {
    if (operation === 'propose') return this.#put(path, local, file, there ?? null);
    if (operation === 'remove') throw new Refused('deleted');
    if (operation !== 'keep-copy' || there?.kind !== 'file') {
      throw new Refused(there?.kind === 'file' ? 'newer' : 'clash');
    }
    if (this.rows.has(path)) return this.#putCopy(path, local, file);
    // It was never dropped here: the newer one counts, and the older one stays as a version.
    if (file.lastModified <= (there.modifiedMs ?? Infinity) + 999) throw new Refused('newer');
    return this.#put(path, local, file, there);
  }

  async #put(path: string, local: Local, file: File, over: Remote | null): Promise<void> {
    await this.#ensure(folderOf(path));
    // What is saved while it goes up is another content: the next drop finds that, since this is what was read before.
    local.digest ??= await this.ports.digest(file, this.signal);
    const put = await this.ports.server.put(path, file, over, this.signal);
    const [{ sent }, known] = [put, this.tree.found];
    const remote = over ? put.remote : await this.#marks.mark(path, put.remote, known);
    known.set(path, remote);
    await this.#remember(path, local, file, remote);
    this.report.up++;
    this.report.sent += sent;
    this.report.uploaded += file.size;
  }

  /** Both sides were changed since the last drop: it goes up beside what is there. */
  async #putCopy(path: string, local: Local, file: File): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const copy = below(folderOf(path), conflictName(lastOf(path), this.ports.label, attempt));
      const there = this.tree.found.get(copy);
      if (!there) {
        this.#marks.note(copy, this.tree.found.get(path), this.rows.get(path));
        await this.#put(copy, local, file, null);
        this.report.conflicts.push(copy);
        return;
      }
      // It went up with an earlier drop.
      const isFile = there.kind === 'file';
      if (!isFile || !(await this.ports.server.has(copy, there, file, this.signal))) continue;
      this.report.unchanged++;
      return;
    }
  }

  async #remember(path: string, local: Local, file: File, there: Remote): Promise<void> {
    const digest = local.digest ?? (await this.ports.digest(file, this.signal));
    const { kind, node, version } = there;
    await this.ports.rows.set(path, {
      kind,
      node,
      version,
      ...statOfRow(local, local.readMs),
      digest,
    });
  }

  #ensure(folder: string): Promise<void> {
    const known = this.tree.found.get(folder)?.kind;
    if (folder === '' || known === 'folder') return Promise.resolve();
    if (known === 'file') return Promise.reject(new Refused('clash'));
    const make = async () => {
      await this.#ensure(folderOf(folder));
      this.tree.found.set(folder, await this.ports.server.makeFolder(folder, this.signal));
    };
    const making = this.#folders.get(folder) ?? make();
    this.#folders.set(folder, making);
    return making;
  }
}

function localOf(file: File, readMs: number): Local {
  const stat = { size: file.size, modifiedMs: file.lastModified };
  return { kind: 'file', ...stat, digest: null, compared: null, readMs };
}
