// The folder of an encrypted workspace that is open in this browser, which folds the log and encrypts by itself.

import type { SealedDone, SealedNode, SealedPlaced, SealedWorkspace } from '@syncline/core';
import { codeOf } from '../words/problem.ts';
import { below, folderOf, lastOf } from './engine.ts';
import { isOwn } from './names.ts';
import type { Remote } from './plan.ts';
import { Changed, Locked, Refused, RootGone, type Server, type Tree } from './ports.ts';

/** What of a workspace that is open is needed here. */
export type Opened = Pick<SealedWorkspace, 'catchUp' | 'changes' | 'files' | 'listing'>;

/** What says that it is not there as it was seen. */
const OUTDATED = ['no_such', 'changed', 'taken', 'mounted', 'into_itself', 'fenced', 'busy'];

export class SealedFolder implements Server {
  /** The ids of the folders, by their paths, as they were listed or made last. */
  #folders = new Map<string, string>();

  constructor(
    /** The workspace, while it is open. */
    readonly open: () => Opened | undefined,
    /** The id of the folder in it. */
    readonly root: string,
    /** Hears each time that some bytes have come or gone. */
    readonly onBytes: () => void = () => undefined,
  ) {}

  async list(): Promise<Tree<Remote>> {
    const open = this.#open();
    await open.catchUp();
    let all: SealedPlaced[];
    try {
      all = await open.listing.all(this.root);
    } catch (error) {
      throw codeOf(error) === 'no_such' ? new RootGone('there') : error;
    }
    const tree: Tree<Remote> = { found: new Map(), skipped: new Map() };
    const paths = new Map([[this.root, '']]);
    for (const placed of all) {
      const { node, folder } = placed;
      const above = paths.get(folder);
      // Each comes after its folder. At another place, or left out, it would be moved or deleted here.
      if (above === undefined) throw new Error('a folder came after what is in it');
      const path = below(above, node.name);
      if (node.kind === 'folder') paths.set(node.id, path);
      const reason = reasonOf(placed);
      if (reason) tree.skipped.set(path, reason);
      else tree.found.set(path, remoteOf(node));
    }
    this.#folders = new Map([...paths].map(([id, path]) => [path, id]));
    return tree;
  }

  /** The workspace looks after its history by itself: it refuses to catch up with an older one. */
  head(): Promise<null> {
    return Promise.resolve(null);
  }

  hashOf(): Promise<string> {
    return Promise.reject(new Error('an encrypted workspace looks after its history'));
  }

  async has(_: string, remote: Remote, file: File, signal: AbortSignal): Promise<boolean> {
    if (remote.size !== file.size) return false;
    if (file.size === 0) return true;
    return this.#seen((open) => open.listing.isVersion(file, seenOf(remote), signal));
  }

  read(
    _: string,
    { node }: Remote,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const { onBytes } = this;
    // That it is the version which was seen is looked at once it is here.
    return Promise.resolve(this.#open().files.read({ file: node }, { signal, onBytes }));
  }

  async put(path: string, file: File, over: Remote | null, signal: AbortSignal) {
    const how = { over: over && seenOf(over), isBeside: false };
    const ask = { folder: this.#folder(folderOf(path)), name: lastOf(path), ...how, file };
    const hooks = { signal, onProgress: this.onBytes };
    const done = await this.#seen((open) => open.changes.put(ask, hooks));
    const made = { kind: 'file', size: file.size, modifiedMs: file.lastModified } as const;
    return { remote: await this.#made(done, made, over), sent: done.sent };
  }

  async mark(_: string, copy: Remote, original: Remote, base: number): Promise<Remote> {
    const beside = { id: original.node, version: base };
    return this.#change(copy, (open) => open.changes.mark(seenOf(copy), beside));
  }

  async makeFolder(path: string): Promise<Remote> {
    const [folder, name] = [this.#folder(folderOf(path)), lastOf(path)];
    const done = await this.#seen((open) => open.changes.makeFolder(folder, name));
    const remote = await this.#made(done, { kind: 'folder', size: 0 });
    this.#folders.set(path, remote.node);
    return remote;
  }

  async move(_: string, to: string, remote: Remote): Promise<Remote> {
    const [folder, name] = [this.#folder(folderOf(to)), lastOf(to)];
    return this.#change(remote, (open) => open.changes.moveOne(seenOf(remote), folder, name));
  }

  async delete(path: string, remote: Remote): Promise<void> {
    const { isPartial } = await this.#seen((open) => open.changes.removeOne(seenOf(remote)));
    if (isPartial) throw new Changed('there');
    this.#folders.delete(path);
  }

  #open(): Opened {
    const open = this.open();
    if (!open) throw new Locked();
    return open;
  }

  #folder(path: string): string {
    const folder = path === '' ? this.root : this.#folders.get(path);
    if (folder === undefined) throw new Changed('there');
    return folder;
  }

  /** Does something to what was seen, or finds that it is not so any more. */
  async #seen<Answer>(deed: (open: Opened) => Promise<Answer>): Promise<Answer> {
    try {
      return await deed(this.#open());
    } catch (error) {
      const code = codeOf(error);
      if (code === 'locked') throw new Locked();
      if (OUTDATED.includes(code)) throw new Changed('there');
      // A file that was changed while it was read.
      if (code === 'read') throw new Changed('here');
      if (code === 'name') throw new Refused('name');
      throw error;
    }
  }

  /** Changes what was seen, or finds that it is not so any more; returns what it is then. */
  async #change(remote: Remote, deed: (open: Opened) => Promise<SealedDone>): Promise<Remote> {
    const { isPartial } = await this.#seen(deed);
    if (isPartial) throw new Changed('there');
    return { ...remote, ...versionOf(remote.node, remote.version + 1) };
  }

  /** What was made. Where others have made something of its name at the same moment, that stays, and this comes beside it anew, as in the folder. */
  async #made(
    { node: id, version, isPartial }: SealedDone,
    made: Pick<Remote, 'kind' | 'size' | 'modifiedMs'>,
    over: Remote | null = null,
  ): Promise<Remote> {
    if (id === null || version === null) throw new Changed('there');
    if (!isPartial || id === over?.node) return { ...made, ...versionOf(id, version) };
    await this.#seen((open) => open.changes.removeOne({ id, version }));
    throw new Changed('there');
  }
}

/** Why something is passed over. */
function reasonOf({ node, isText, isMounted }: SealedPlaced) {
  if (!isText || isOwn(node.name)) return 'name';
  if (node.kind === 'link') return 'link';
  return isMounted ? 'mounted' : null;
}

function seenOf({ node: id, version }: Remote): { id: string; version: number } {
  return { id, version };
}

/** Which version of what it is. */
function versionOf(node: string, version: number): Pick<Remote, 'node' | 'version' | 'etag'> {
  return { node, version, etag: `${node}-${version}` };
}

function remoteOf({ id, kind, version, size, modifiedMs }: SealedNode): Remote {
  const seen = versionOf(id, version);
  if (kind === 'folder') return { kind, ...seen, size: 0 };
  return { kind: 'file', ...seen, size: size ?? 0, modifiedMs };
}
