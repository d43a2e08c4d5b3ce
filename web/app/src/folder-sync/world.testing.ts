// A folder, a server and a memory of the browser, all three in memory, for tests: every call may be the last one, and meanwhile people
// edit on both sides. The server and the memory are in model-server.testing.ts.

import { folderOf } from './engine.ts';
import type { Head } from './history.ts';
import type { Base, Local, Stat } from './plan.ts';
import { Changed, Refused, type Disk, type Part, type Tree } from './ports.ts';
import { isSameStat } from './stats.ts';

/** The page is gone. */
export class Cut extends Error {}

export interface Entry {
  kind: 'file' | 'folder';
  content: string;
  modifiedMs: number;
}

interface There extends Entry {
  node: string;
  version: number;
}

/** What happens at each call: nothing, an edit, or the end. */
export type Happening = (name: string) => void;

export class World {
  nowMs = 1_000_000;
  here = new Map<string, Entry>();
  there = new Map<string, There>();
  rows = new Map<string, Base>();
  /** All that was ever put into the trash of the folder, or on the server. */
  trash: string[] = [];
  history: string[] = [];
  /** Which copies were marked, and beside which version of what. */
  marks: string[] = [];
  /** The hash of each entry of the log of the server; no two are ever the same. */
  log: string[] = [];
  /** Where that was when all rows were written. */
  head: Head | null = null;
  before: Happening = () => undefined;
  after: Happening = () => undefined;
  #nodes = 0;
  #entries = 0;

  tick(): number {
    return (this.nowMs += 5_000);
  }

  /** The log has another entry. */
  grow(): void {
    this.log.push(`entry ${this.#entries++}`);
  }

  /** What a backup of the server has; called, the server is set back to it. */
  backUp(): () => void {
    const [there, log] = [new Map(this.there), [...this.log]];
    return () => {
      [this.there, this.log] = [new Map(there), [...log]];
    };
  }

  /** Does what a call does, between what may happen before and after it. */
  call<Answer>(name: string, deed: () => Answer): Promise<Answer> {
    return Promise.resolve().then(() => {
      this.before(name);
      const answer = deed();
      this.after(name);
      return answer;
    });
  }

  putHere(path: string, entry: Omit<Entry, 'modifiedMs'>): void {
    this.here.set(path, { ...entry, modifiedMs: this.tick() });
  }

  putThere(path: string, entry: Omit<Entry, 'modifiedMs'>): void {
    const old = this.there.get(path);
    const node = old?.kind === entry.kind ? old.node : `n${this.#nodes++}`;
    const version = old?.kind === entry.kind ? old.version + 1 : 1;
    this.there.set(path, { ...entry, node, version, modifiedMs: this.tick() });
    this.grow();
    if (entry.kind === 'file') this.history.push(entry.content);
  }

  /** Gives a file another place: it keeps its node, and has another version. */
  moveThere(from: string, to: string): void {
    const found = this.there.get(from);
    if (!found) return;
    this.there.delete(from);
    this.there.set(to, { ...found, version: found.version + 1 });
    this.grow();
  }

  /** What a side shows, path by path. */
  static show(side: Map<string, Entry>): string[] {
    return [...side].map(([path, { kind, content }]) => `${path} ${kind} ${content}`).sort();
  }
}

export function isEmpty(side: Map<string, unknown>, folder: string): boolean {
  return ![...side.keys()].some((path) => path.startsWith(`${folder}/`));
}

export function stands(side: Map<string, Entry>, folder: string): boolean {
  return folder === '' || side.get(folder)?.kind === 'folder';
}

export class ModelDisk implements Disk {
  constructor(readonly world: World) {}

  #file(path: string, expected: Stat | null): Entry | undefined {
    const found = this.world.here.get(path);
    if (!expected && found) throw new Changed('here');
    if (expected && (found?.kind !== 'file' || !isSameStat(statOf(found), expected))) {
      throw new Changed('here');
    }
    return found;
  }

  scan(): Promise<Tree<Local>> {
    return this.world.call('scan', () => {
      const found = new Map<string, Local>();
      for (const [path, entry] of this.world.here) {
        const stat = entry.kind === 'file' ? statOf(entry) : { size: 0, modifiedMs: 0 };
        const more = { digest: null, compared: null, readMs: this.world.nowMs };
        found.set(path, { kind: entry.kind, ...stat, ...more });
      }
      return { found, skipped: new Map() };
    });
  }

  file(path: string): Promise<File | null> {
    return this.world.call('file', () => {
      const found = this.world.here.get(path);
      return found?.kind === 'file' ? fileOf(found) : null;
    });
  }

  makeFolder(path: string): Promise<void> {
    return this.world.call('makeFolder', () => {
      const { here } = this.world;
      if (!stands(here, folderOf(path)) || here.get(path)?.kind === 'file')
        throw new Changed('here');
      here.set(path, { kind: 'folder', content: '', modifiedMs: 0 });
    });
  }

  async receive(_: string, content: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<Part> {
    const text = await new Response(content).text();
    const entry = { kind: 'file', content: text, modifiedMs: this.world.tick() } as const;
    return this.world.call('receive', () => ({
      file: fileOf(entry),
      drop: () => Promise.resolve(),
    }));
  }

  async place(part: Part, path: string, expected: Stat | null): Promise<Stat> {
    const content = await part.file.text();
    const modifiedMs = part.file.lastModified;
    return this.world.call('place', () => {
      this.#file(path, expected);
      if (!stands(this.world.here, folderOf(path))) throw new Changed('here');
      this.world.here.set(path, { kind: 'file', content, modifiedMs });
      return { size: part.file.size, modifiedMs };
    });
  }

  move(path: string, to: string, expected: Stat): Promise<void> {
    return this.world.call('move', () => {
      if (!stands(this.world.here, folderOf(to))) throw new Changed('here');
      if (this.world.here.has(to)) throw new Refused('taken');
      const found = this.#file(path, expected);
      this.world.here.delete(path);
      if (found) this.world.here.set(to, found);
    });
  }

  remove(path: string, expected: Stat): Promise<void> {
    return this.world.call('remove', () => {
      const found = this.#file(path, expected);
      if (found) this.world.trash.push(found.content);
      this.world.here.delete(path);
    });
  }

  removeFolder(path: string): Promise<void> {
    return this.world.call('removeFolder', () => {
      if (this.world.here.get(path)?.kind === 'file') throw new Changed('here');
      if (!isEmpty(this.world.here, path)) throw new Refused('not-empty');
      this.world.here.delete(path);
    });
  }
}

export function fileOf({ content, modifiedMs }: Entry): File {
  return new File([content], 'file', { lastModified: modifiedMs });
}

function statOf({ content, modifiedMs }: Entry): Stat {
  return { size: content.length, modifiedMs };
}
