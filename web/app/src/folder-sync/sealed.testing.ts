// An encrypted workspace in memory, for tests: what it does is decided as the core does it, and others may be faster each time.

import type { SealedDone, SealedNode, SealedPlaced } from '@syncline/core';
import { below, folderOf, lastOf } from './engine.ts';
import { conflictName } from './names.ts';
import type { Opened } from './sealed-folder.ts';
import type { World } from './world.testing.ts';

export const ROOT = 'root';

/** An error as the core has it. */
function failure(code: string): Error {
  return Object.assign(new Error(code), { name: 'CoreError', code });
}

const DONE = { isOver: true, node: null, version: null, isBeside: false, isPartial: false };

export class ModelSealed {
  constructor(readonly world: World) {}

  /** What the folder that is kept in sync asks for. */
  get opened(): Opened {
    const { listing, changes } = this;
    const catchUp = () => this.world.call('list', () => true);
    const read = ({ file }: { file: string }) => this.#read(file);
    return { catchUp, listing, changes, files: { read } } as unknown as Opened;
  }

  readonly listing = {
    all: (root: string) =>
      Promise.resolve().then(() => {
        const top = this.#folder(root);
        const inside = (path: string) => top === '' || path.startsWith(`${top}/`);
        return [...this.world.there.keys()]
          .filter(inside)
          .sort()
          .map((path) => this.#placed(path));
      }),
    isVersion: async (file: Blob, { id, version }: { id: string; version: number }) => {
      const text = await file.text();
      return this.world.call('has', () => this.#seen(id, version).content === text);
    },
  };

  readonly changes = {
    makeFolder: async (folder: string, name: string): Promise<SealedDone> => {
      this.#refuseTaken(folder, name);
      return this.world.call('makeFolder there', () => {
        const path = below(this.#folder(folder), name);
        const there = this.world.there.get(path);
        if (there?.kind === 'folder') return this.#done(path);
        return this.#new(path, { kind: 'folder', content: '' });
      });
    },
    put: async (ask: {
      folder: string;
      name: string;
      over: { id: string; version: number } | null;
      file: File;
    }): Promise<SealedDone & { sent: number }> => {
      const { folder, name, over: seen, file } = ask;
      const [node, over] = [seen?.id ?? '', seen?.version ?? null];
      const [content, sent] = [await file.text(), file.size];
      const path = below(this.#folder(folder), name);
      if (over === null) this.#refuseTaken(folder, name);
      else if (this.#seen(node, over) !== this.world.there.get(path)) throw failure('changed');
      return this.world.call('put', () => {
        const now = over === null ? undefined : this.#find(node);
        if (now === undefined) {
          // What was deleted is brought back by whoever has changed it.
          const place = below(this.#folder(folder), name);
          if (over !== null && this.world.there.has(place)) throw failure('changed');
          return { ...this.#new(place, { kind: 'file', content }), sent };
        }
        this.#seen(node, over ?? 0);
        this.world.putThere(now, { kind: 'file', content });
        return { ...this.#done(now), sent };
      });
    },
    moveOne: async (
      { id, version }: { id: string; version: number },
      folder: string,
      name: string,
    ): Promise<SealedDone> => {
      this.#seen(id, version);
      this.#refuseTaken(folder, name);
      return this.world.call('move there', () => {
        const to = below(this.#folder(folder), name);
        const isFree = !this.world.there.has(to) && this.#isSeen(id, version);
        if (!isFree) return { ...DONE, isPartial: true };
        this.world.moveThere(this.#path(id), to);
        return DONE;
      });
    },
    removeOne: async ({ id, version }: { id: string; version: number }): Promise<SealedDone> => {
      this.#seen(id, version);
      if (this.#hasAnything(id)) throw failure('changed');
      return this.world.call('delete', () => {
        if (!this.#isSeen(id, version) || this.#hasAnything(id)) {
          return { ...DONE, isPartial: true };
        }
        this.world.there.delete(this.#path(id));
        return DONE;
      });
    },
    mark: (
      { id, version }: { id: string; version: number },
      original: { id: string; version: number },
    ): Promise<SealedDone> =>
      this.world.call('mark', () => {
        const found = this.#seen(id, version);
        this.world.there.set(this.#path(id), { ...found, version: version + 1 });
        this.world.marks.push(`${this.#path(id)} beside ${original.id}.${original.version}`);
        return DONE;
      }),
  };

  #read(file: string): ReadableStream<Uint8Array<ArrayBuffer>> {
    const found = this.world.there.get(this.#find(file) ?? '');
    return new ReadableStream({
      pull: (controller) => {
        if (!found) return controller.error(failure('no_such'));
        if (found.content !== '') controller.enqueue(new TextEncoder().encode(found.content));
        controller.close();
      },
    });
  }

  #find(node: string): string | undefined {
    return [...this.world.there].find(([, there]) => there.node === node)?.[0];
  }

  #path(node: string): string {
    const path = this.#find(node);
    if (path === undefined) throw failure('no_such');
    return path;
  }

  #folder(id: string): string {
    if (id === ROOT) return '';
    const path = this.#path(id);
    if (this.world.there.get(path)?.kind !== 'folder') throw failure('no_such');
    return path;
  }

  #seen(node: string, version: number) {
    const found = this.world.there.get(this.#path(node));
    if (found?.version !== version) throw failure('changed');
    return found;
  }

  #isSeen(node: string, version: number): boolean {
    return this.world.there.get(this.#find(node) ?? '')?.version === version;
  }

  #hasAnything(node: string): boolean {
    const path = this.#find(node);
    return [...this.world.there.keys()].some((one) => one.startsWith(`${path ?? ''}/`));
  }

  #refuseTaken(folder: string, name: string): void {
    if (this.world.there.has(below(this.#folder(folder), name))) throw failure('taken');
  }

  /** Makes something, beside what others have put there at the same moment. */
  #new(path: string, entry: { kind: 'file' | 'folder'; content: string }): SealedDone {
    const { there } = this.world;
    const holder = there.get(path);
    if (holder && holder.kind === entry.kind && holder.content === entry.content) {
      return this.#done(path);
    }
    let place = path;
    for (let attempt = 0; there.has(place); attempt++) {
      place = below(folderOf(path), conflictName(lastOf(path), 'conflict v1', attempt));
    }
    this.world.putThere(place, entry);
    return { ...this.#done(place), isPartial: place !== path };
  }

  #done(path: string): SealedDone {
    const { node = null, version = null } = this.world.there.get(path) ?? {};
    return { ...DONE, node, version };
  }

  #placed(path: string): SealedPlaced {
    const found = this.world.there.get(path);
    if (!found) throw failure('no_such');
    const { kind, content, node: id, version, modifiedMs } = found;
    const size = kind === 'file' ? content.length : null;
    const node: SealedNode = {
      ...{ id, kind, version, size, modifiedMs },
      name: lastOf(path),
      isConflict: false,
    };
    const folder = this.world.there.get(folderOf(path))?.node ?? ROOT;
    return { node, folder, isText: true, isMounted: false };
  }
}
