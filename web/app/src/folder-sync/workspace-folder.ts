// The folder of a workspace, by the API of the server.

import {
  encodeName,
  fetchGenesis,
  joinPath,
  ProblemError,
  ROOT,
  type Node,
  type NodePath,
  type SynclineClient,
} from '@syncline/api';
import type { Core } from '@syncline/core';
import { fetchTable, hasContent, secretOf } from '../transfers/content.ts';
import { sendDelta } from '../transfers/delta.ts';
import { isSent } from '../transfers/sent.ts';
import { endUploads, upload, type UploadJob } from '../transfers/upload.ts';
import { wait } from '../transfers/wait.ts';
import { below, lastOf } from './engine.ts';
import { isOutdated } from './failures.ts';
import type { Head } from './history.ts';
import type { Remote } from './plan.ts';
import { isOwn } from './names.ts';
import { Changed, RootGone, type Reason, type Server, type Tree } from './ports.ts';

/** How often a workspace is listed in a row while folders of it go away. */
const LISTS_MAX = 3;

/** How many folders are listed at once. */
const AT_ONCE = 4;

/** What a folder of a workspace is to be told apart by: its path may lead to another one some day. */
export interface Place {
  workspace: string;
  path: NodePath;
  /** Its id; nothing for the root, which is always the same. */
  node: string | null;
}

export class WorkspaceFolder implements Server {
  #secret: Promise<Uint8Array> | null = null;

  constructor(
    readonly client: SynclineClient,
    readonly core: () => Promise<Core>,
    readonly place: Place,
  ) {}

  /** Where something is, as the server writes it. */
  pathOf(path: string): NodePath {
    return path.split('/').reduce(joinPath, this.place.path);
  }

  async list(signal: AbortSignal): Promise<Tree<Remote>> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#listAll(signal);
      } catch (error) {
        if (!(error instanceof Changed) || tries === LISTS_MAX) throw error;
      }
    }
  }

  async #listAll(signal: AbortSignal): Promise<Tree<Remote>> {
    const { workspace, path, node } = this.place;
    if (path !== ROOT) {
      const root = await this.client.node(workspace, path, signal);
      if (root?.id !== node || root?.kind !== 'folder') throw new RootGone('there');
      // What is in a folder that is a workspace of its own by now is there.
      if (root.mounted !== null) throw new RootGone('there');
    }
    const tree: Tree<Remote> = { found: new Map(), skipped: new Map() };
    let level: { at: NodePath; path: string }[] = [{ at: path, path: '' }];
    while (level.length > 0) {
      const next: typeof level = [];
      const folders = level.values();
      const work = async () => {
        for (const folder of folders) next.push(...(await this.#listOne(folder, tree, signal)));
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      level = next;
    }
    return tree;
  }

  /** Lists a folder, and returns those in it. */
  async #listOne(
    folder: { at: NodePath; path: string },
    tree: Tree<Remote>,
    signal: AbortSignal,
  ): Promise<{ at: NodePath; path: string }[]> {
    const folders: { at: NodePath; path: string }[] = [];
    try {
      for await (const page of this.client.folder(this.place.workspace, folder.at, signal)) {
        for (const node of page) {
          const path = below(folder.path, node.name);
          const reason = skippedFor(node);
          if (reason) tree.skipped.set(path, reason);
          else tree.found.set(path, remoteOf(node));
          if (node.kind === 'folder' && !reason) folders.push({ at: node.path, path });
        }
      }
    } catch (error) {
      // It was deleted, moved or made a workspace of its own since the one that it is in was listed.
      if (folder.path !== '' && isOutdated(error)) throw new Changed('there');
      throw error;
    }
    return folders;
  }

  async head(signal: AbortSignal): Promise<Head> {
    signal.throwIfAborted();
    try {
      const found = await this.client.workspace(this.place.workspace);
      return { seq: found.head_seq, hash: found.head_hash };
    } catch (error) {
      const isGone = error instanceof ProblemError && error.code === 'not_found';
      throw isGone ? new RootGone('there') : error;
    }
  }

  async hashOf(seq: number, signal: AbortSignal): Promise<string> {
    const params = { workspace: this.place.workspace, seq: `${seq}` };
    const name = 'GET /workspaces/{workspace}/log/{seq}';
    return (await this.client.call(name, { params, signal })).hash;
  }

  async has(path: string, remote: Remote, file: File, signal: AbortSignal): Promise<boolean> {
    if (remote.size !== file.size) return false;
    this.#secret ??= fetchGenesis(this.client, this.place.workspace, signal).then(secretOf);
    let secret;
    try {
      secret = await this.#secret;
    } catch (error) {
      this.#secret = null;
      throw error;
    }
    const at = this.pathOf(path);
    const table = await fetchTable(this.client, this.place.workspace, at, remote.etag, signal);
    if (!table) throw new Changed('there');
    return hasContent(await this.core(), file, table, secret, signal);
  }

  async read(
    path: string,
    remote: Remote,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const params = { workspace: this.place.workspace, path: this.pathOf(path) };
    const name = 'GET /workspaces/{workspace}/files/{path}';
    const response = await this.client.ask(name, { params, signal });
    if (response.headers.get('etag') !== remote.etag) {
      await response.body?.cancel();
      throw new Changed('there');
    }
    return response.body ?? (new Blob([]).stream() as ReadableStream<Uint8Array<ArrayBuffer>>);
  }

  async put(path: string, file: File, over: Remote | null, signal: AbortSignal) {
    const condition = over ? { ifMatch: over.etag } : ({ ifAbsent: true } as const);
    const { workspace } = this.place;
    const at = this.pathOf(path);
    const modifiedMs = file.lastModified;
    const job: UploadJob = {
      workspace,
      path: at,
      file,
      modifiedMs,
      condition,
      upload: null,
      delta: null,
    };
    let sent = file.size;
    const hooks = {
      onProgress: () => undefined,
      onConnection: () => undefined,
      wait,
      sendDelta,
      isSent,
      onDelta: (bytes: number) => (sent = bytes),
    };
    try {
      const node = await upload(this.client, job, hooks, signal);
      return { remote: remoteOf(node), sent };
    } finally {
      // The next round begins anew: nobody goes on with what the server has, and it has room for few.
      void endUploads(this.client, job);
    }
  }

  async mark(_: string, copy: Remote, original: Remote, base: number, signal: AbortSignal) {
    const { node, version } = copy;
    const body = { node, version, original: original.node, base };
    const params = { workspace: this.place.workspace };
    const name = 'POST /workspaces/{workspace}/conflicts';
    return remoteOf(await this.client.call(name, { params, body, signal }));
  }

  async makeFolder(path: string, signal: AbortSignal): Promise<Remote> {
    return remoteOf(await this.client.makeFolder(this.place.workspace, this.pathOf(path), signal));
  }

  async move(path: string, to: string, remote: Remote, signal: AbortSignal): Promise<Remote> {
    signal.throwIfAborted();
    const [from, at] = [this.pathOf(path), this.pathOf(to)];
    const condition = { ifMatch: remote.etag };
    return remoteOf(await this.client.move(this.place.workspace, from, at, condition));
  }

  async delete(path: string, remote: Remote, signal: AbortSignal): Promise<void> {
    const [{ workspace }, at] = [this.place, this.pathOf(path)];
    if (remote.kind === 'folder') {
      // The server deletes a folder with everything in it; what came into it since is not deleted unseen.
      for await (const page of this.client.folder(workspace, at, signal)) {
        if (page.length > 0) throw new Changed('there');
      }
    }
    try {
      await this.client.delete(workspace, at, { ifMatch: remote.etag });
    } catch (error) {
      if (!(error instanceof ProblemError && error.code === 'not_found')) throw error;
    }
  }
}

/** Why something of a workspace is passed over. */
function skippedFor(node: Node): Reason | null {
  // A name that is no text cannot be one of a file here, and ours are none of anybody's.
  const isText = lastOf(node.path) === encodeName(node.name);
  if (!isText || isOwn(node.name)) return 'name';
  if (node.kind === 'link') return 'link';
  return node.mounted === null ? null : 'mounted';
}

export function remoteOf({ kind, id: node, version, etag, size, modified }: Node): Remote {
  const modifiedMs = modified === null ? undefined : modified * 1000;
  const isFolder = kind === 'folder';
  return { kind: isFolder ? 'folder' : 'file', node, version, etag, size: size ?? 0, modifiedMs };
}
