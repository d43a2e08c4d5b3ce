// The server and the memory of the browser of a world for tests.

import { folderOf } from './engine.ts';
import type { Head } from './history.ts';
import type { Base, Remote } from './plan.ts';
import { Changed, type Rows, type Server, type Tree } from './ports.ts';
import { isEmpty, stands, World } from './world.testing.ts';

export class ModelServer implements Server {
  constructor(readonly world: World) {}

  #remote(path: string): Remote {
    const found = this.world.there.get(path);
    if (!found) throw new Changed('there');
    const { kind, node, version, content, modifiedMs } = found;
    const etag = `${node}-${version}`;
    return { kind, node, version, etag, size: content.length, modifiedMs };
  }

  #check(path: string, over: Remote | null): void {
    if (over && this.#remote(path).etag !== over.etag) throw new Changed('there');
    if (!over && this.world.there.has(path)) throw new Changed('there');
    if (!stands(this.world.there, folderOf(path))) throw new Changed('there');
  }

  list(): Promise<Tree<Remote>> {
    return this.world.call('list', () => ({
      found: new Map([...this.world.there.keys()].map((path) => [path, this.#remote(path)])),
      skipped: new Map(),
    }));
  }

  head(): Promise<Head> {
    return this.world.call('head', () => {
      const { log } = this.world;
      return { seq: log.length, hash: log.at(-1) ?? 'genesis' };
    });
  }

  hashOf(seq: number): Promise<string> {
    return this.world.call('hash', () => this.world.log[seq - 1] ?? 'none');
  }

  async has(path: string, remote: Remote, file: File): Promise<boolean> {
    const text = await file.text();
    return this.world.call('has', () => {
      this.#check(path, remote);
      return this.world.there.get(path)?.content === text;
    });
  }

  read(path: string, remote: Remote): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    return this.world.call('get', () => {
      this.#check(path, remote);
      const content = this.world.there.get(path)?.content ?? '';
      return new Blob([content]).stream() as ReadableStream<Uint8Array<ArrayBuffer>>;
    });
  }

  async put(path: string, file: File, over: Remote | null) {
    const content = await file.text();
    return this.world.call('put', () => {
      this.#check(path, over);
      this.world.putThere(path, { kind: 'file', content });
      return { remote: this.#remote(path), sent: file.size };
    });
  }

  mark(path: string, copy: Remote, original: Remote, base: number): Promise<Remote> {
    return this.world.call('mark', () => {
      this.#check(path, copy);
      const found = this.world.there.get(path);
      if (!found) throw new Changed('there');
      this.world.there.set(path, { ...found, version: found.version + 1 });
      this.world.grow();
      this.world.marks.push(`${path} beside ${original.node}.${base}`);
      return this.#remote(path);
    });
  }

  makeFolder(path: string): Promise<Remote> {
    return this.world.call('makeFolder there', () => {
      this.#check(path, null);
      this.world.putThere(path, { kind: 'folder', content: '' });
      return this.#remote(path);
    });
  }

  move(path: string, to: string, remote: Remote): Promise<Remote> {
    return this.world.call('move there', () => {
      this.#check(path, remote);
      this.#check(to, null);
      this.world.moveThere(path, to);
      return this.#remote(to);
    });
  }

  delete(path: string, remote: Remote): Promise<void> {
    return this.world.call('delete', () => {
      this.#check(path, remote);
      if (!isEmpty(this.world.there, path)) throw new Changed('there');
      this.world.there.delete(path);
      this.world.grow();
    });
  }
}

export class ModelRows implements Rows {
  constructor(readonly world: World) {}

  all(): Promise<Map<string, Base>> {
    return this.world.call('rows', () => new Map(this.world.rows));
  }

  set(path: string, row: Base): Promise<void> {
    return this.world.call('set', () => void this.world.rows.set(path, row));
  }

  delete(path: string): Promise<void> {
    return this.world.call('forget', () => void this.world.rows.delete(path));
  }

  head(): Promise<Head | null> {
    return this.world.call('seen', () => this.world.head);
  }

  setHead(head: Head): Promise<void> {
    return this.world.call('set seen', () => void (this.world.head = head));
  }

  clear(): Promise<void> {
    return this.world.call('clear', () => {
      this.world.rows.clear();
      this.world.head = null;
    });
  }
}
