// How each operation of a plan is carried out. Every step leaves the trees as they are after it, so that the next decision sees them.

import { below, folderOf, lastOf, type Trees } from './engine.ts';
import { Marks } from './marks.ts';
import { conflictName } from './names.ts';
import { decide, type Base, type Local, type Operation, type Remote, type Stat } from './plan.ts';
import { Changed, Refused, type Part, type Ports } from './ports.ts';
import type { Report } from './report.ts';
import { isSameStat, rowOf, statOfRow } from './stats.ts';

export class Steps {
  readonly #folders = new Map<string, Promise<void>>();
  readonly #marks: Marks;
  /** Names of copies that are kept just now: two files may want the same one. */
  readonly #copies = new Set<string>();

  constructor(
    readonly ports: Ports,
    readonly trees: Trees,
    readonly report: Report,
    readonly signal: AbortSignal,
  ) {
    this.#marks = new Marks(ports, signal);
  }

  /** Carries an operation out; says whether anything was done. */
  async run(operation: Operation, path: string): Promise<boolean> {
    const { local, remote, rows } = this.trees;
    const [here, there, base] = [local.get(path), remote.get(path), rows.get(path)];
    switch (operation) {
      case 'forget':
        await this.forget(path);
        return true;
      case 'blocked':
        throw new Refused('clash');
      case 'remove':
        return here !== undefined && this.#remove(path, here);
      case 'propose':
        return here !== undefined && this.#propose(path, here, there);
      case 'materialise':
        return there !== undefined && this.#materialise(path, there);
      case 'propose-delete':
        return there !== undefined && this.#proposeDelete(path, there);
      case 'refresh':
        if (here && base) await this.remember(path, { ...base, ...this.statOf(here) });
        return true;
      case 'keep-copy':
        return here !== undefined && this.#keepCopy(path, here);
      case 'read':
        if (here) await this.read(path, here);
        return true;
      default:
        return (
          here !== undefined && there !== undefined && this.#both(operation, path, here, there)
        );
    }
  }

  async #both(operation: Operation, path: string, here: Local, there: Remote): Promise<boolean> {
    if (operation === 'compare') {
      const file = await this.file(path, here);
      const isEqual = await this.ports.server.has(path, there, file, this.signal);
      here.compared = { etag: there.etag, isEqual };
    } else if (operation === 'accept') {
      await this.#accept(path, here, there);
    } else {
      // Programs that copy times along may have put another content there: before it is replaced it is read.
      const isRead = here.digest !== null;
      const digest = here.digest ?? (await this.read(path, here));
      if (!isRead && digest !== this.trees.rows.get(path)?.digest) return true;
      await this.#receive(path, there, here);
    }
    return true;
  }

  /** A file, as the scan has found it. */
  async file(path: string, expected: Stat): Promise<File> {
    const file = await this.ports.disk.file(path);
    if (!file || !isSameStat(file, expected)) throw new Changed('here');
    return file;
  }

  /** Reads a file that the scan has found, to learn what its content is. */
  async read(path: string, here: Local): Promise<string> {
    here.readMs = this.ports.now();
    here.digest = await this.ports.digest(await this.file(path, here), this.signal);
    return here.digest;
  }

  /** What a row remembers of it. */
  statOf(here: Local): Stat {
    return statOfRow(here, here.readMs);
  }

  /** Writes a row of the merge base. */
  async remember(path: string, row: Base): Promise<void> {
    await this.ports.rows.set(path, row);
    this.trees.rows.set(path, row);
  }

  async forget(path: string): Promise<void> {
    await this.ports.rows.delete(path);
    this.trees.rows.delete(path);
  }

  async #accept(path: string, here: Local, there: Remote): Promise<void> {
    const base = this.trees.rows.get(path);
    const isAsBefore = base?.kind === here.kind && isSameStat(here, base);
    let digest = here.digest ?? '';
    if (here.kind === 'file' && here.digest === null) {
      digest = isAsBefore ? base.digest : await this.read(path, here);
    }
    await this.remember(
      path,
      rowOf(there, here.kind === 'file' ? this.statOf(here) : here, digest),
    );
  }

  async #propose(path: string, here: Local, there: Remote | undefined): Promise<boolean> {
    await this.ensureThere(folderOf(path));
    if (here.kind === 'folder') {
      if (!this.trees.remote.has(path)) await this.#makeThere(path);
      const made = this.trees.remote.get(path);
      if (made) await this.remember(path, rowOf(made, here, ''));
      return true;
    }
    const file = await this.file(path, here);
    const digest = here.digest ?? (await this.read(path, here));
    const put = await this.ports.server.put(path, file, there ?? null, this.signal);
    const [{ sent }, known] = [put, this.trees.remote];
    const remote = there ? put.remote : await this.#marks.mark(path, put.remote, known);
    known.set(path, remote);
    // Where it was written to while it was sent, nobody knows what arrived: it will be sent again.
    const isSame = isSameStat(await this.ports.disk.file(path), here);
    await this.remember(path, rowOf(remote, this.statOf(here), isSame ? digest : ''));
    if (!isSame) throw new Changed('here');
    this.report.up++;
    this.report.sent += sent;
    this.report.uploaded += file.size;
    return true;
  }

  async #materialise(path: string, there: Remote): Promise<boolean> {
    await this.ensureHere(folderOf(path));
    if (there.kind === 'folder') {
      await this.#makeHere(path);
      await this.remember(path, rowOf(there, FOLDER, ''));
    } else {
      await this.#receive(path, there, null);
    }
    return true;
  }

  /** Puts what the server has in its place, once it is here whole and is what it should be. */
  async #receive(path: string, there: Remote, here: Local | null): Promise<void> {
    const { disk, server } = this.ports;
    const content = await server.read(path, there, this.signal);
    const part = await disk.receive(lastOf(path), content, this.signal);
    let stat: Stat;
    let digest: string;
    const readMs = this.ports.now();
    try {
      await this.#verify(path, there, part);
      digest = await this.ports.digest(part.file, this.signal);
      stat = await disk.place(part, path, here);
    } catch (error) {
      await part.drop().catch(() => undefined);
      throw error;
    }
    this.trees.local.set(path, { kind: 'file', ...stat, digest, compared: null, readMs });
    await this.remember(path, rowOf(there, statOfRow(stat, readMs), digest));
    this.report.down++;
    this.report.received += there.size;
  }

  async #verify(path: string, there: Remote, part: Part): Promise<void> {
    const isWhole = part.file.size === there.size;
    if (isWhole && (await this.ports.server.has(path, there, part.file, this.signal))) return;
    throw new Changed('there');
  }

  async #keepCopy(path: string, here: Local): Promise<boolean> {
    const { local, remote } = this.trees;
    const [folder, name] = [folderOf(path), lastOf(path)];
    for (let attempt = 0; ; attempt++) {
      const copy = conflictName(name, this.ports.label, attempt);
      const to = below(folder, copy);
      if (local.has(to) || remote.has(to) || this.#copies.has(to)) continue;
      this.#copies.add(to);
      try {
        await this.ports.disk.move(path, to, here);
      } catch (error) {
        // Something stands there that is not synced.
        if (error instanceof Refused && error.reason === 'taken') continue;
        throw error;
      }
      local.delete(path);
      local.set(to, { ...here, compared: null });
      this.#marks.note(to, remote.get(path), this.trees.rows.get(path));
      this.report.conflicts.push(to);
      return true;
    }
  }

  async #remove(path: string, here: Local): Promise<boolean> {
    if (here.kind === 'folder') {
      if (hasAnythingBelow(this.trees.local, path)) return false;
      await this.ports.disk.removeFolder(path);
    } else {
      await this.ports.disk.remove(path, here);
    }
    this.trees.local.delete(path);
    await this.forget(path);
    this.report.deletedHere++;
    return true;
  }

  async #proposeDelete(path: string, there: Remote): Promise<boolean> {
    if (there.kind === 'folder') {
      if (hasAnythingBelow(this.trees.remote, path)) return false;
      // What is passed over there stays, and so does what it is in.
      if (hasAnythingBelow(this.trees.skippedThere, path)) throw new Refused('not-empty');
    }
    if (await this.#isBack(path)) throw new Changed('here');
    await this.ports.server.delete(path, there, this.signal);
    this.trees.remote.delete(path);
    await this.forget(path);
    this.report.deletedThere++;
    return true;
  }

  /** Whether a file is there that was absent: long after the scan it may be, and a folder that the system does not let be listed looked empty. */
  async #isBack(path: string): Promise<boolean> {
    if (!(await this.ports.disk.file(path))) return false;
    // Where large and small letters are the same, it is what has another name here.
    const folded = (name: string) => name.normalize('NFC').toLowerCase();
    return ![...this.trees.local.keys()].some((other) => folded(other) === folded(path));
  }

  /** What is put into a folder that was deleted on the other side brings it back. */
  ensureThere(folder: string): Promise<void> {
    if (folder === '' || this.trees.remote.get(folder)?.kind === 'folder') return DONE;
    return this.#once(`there ${folder}`, async () => {
      await this.ensureThere(folderOf(folder));
      if (this.trees.remote.has(folder)) throw new Refused('clash');
      await this.#makeThere(folder);
    });
  }

  ensureHere(folder: string): Promise<void> {
    if (folder === '' || this.trees.local.get(folder)?.kind === 'folder') return DONE;
    return this.#once(`here ${folder}`, async () => {
      await this.ensureHere(folderOf(folder));
      const inTheWay = this.trees.local.get(folder);
      if (inTheWay) await this.#clear(folder, inTheWay);
      await this.#makeHere(folder);
    });
  }

  /** Clears the place of a folder there from a file here: one that somebody made or changed is kept beside it. */
  async #clear(path: string, here: Local): Promise<void> {
    const { remote, rows } = this.trees;
    const wanted = () => decide(here, remote.get(path), rows.get(path));
    if (wanted() === 'read') await this.read(path, here);
    await (wanted() === 'remove' ? this.#remove(path, here) : this.#keepCopy(path, here));
  }

  async #makeThere(path: string): Promise<void> {
    this.trees.remote.set(path, await this.ports.server.makeFolder(path, this.signal));
  }

  async #makeHere(path: string): Promise<void> {
    await this.ports.disk.makeFolder(path);
    this.trees.local.set(path, { ...FOLDER });
  }

  /** Several files may want the same folder. */
  #once(key: string, make: () => Promise<void>): Promise<void> {
    const making = this.#folders.get(key) ?? make();
    this.#folders.set(key, making);
    return making.finally(() => this.#folders.delete(key));
  }
}

const DONE = Promise.resolve();

const FOLDER: Local = {
  kind: 'folder',
  size: 0,
  modifiedMs: 0,
  digest: null,
  compared: null,
  readMs: 0,
};

function hasAnythingBelow(tree: ReadonlyMap<string, unknown>, folder: string): boolean {
  for (const path of tree.keys()) if (path.startsWith(`${folder}/`)) return true;
  return false;
}
