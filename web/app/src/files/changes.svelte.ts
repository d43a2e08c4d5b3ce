// What somebody does to a folder: make, rename, delete, and take it back.

import {
  joinPath,
  nameOf,
  parentOf,
  ROOT,
  type Node,
  type NodePath,
  type SynclineClient,
} from '@syncline/api';
import { notices } from '../shell/notices.svelte.ts';
import { problemText } from '../words/problem.ts';
import { t } from '../words/words.svelte.ts';
import { deleteAll, remember, restoreAll } from './deleting.ts';
import type { Folder } from './folder.svelte.ts';
import { copyAll, moveAll, moveBack, type Relocation } from './relocating.ts';

export type Asked =
  /** In the folder that was shown when it was asked. */
  | { kind: 'create'; path: NodePath }
  | { kind: 'rename'; node: Node }
  | { kind: 'delete'; nodes: readonly Node[] }
  | { kind: Relocation; nodes: readonly Node[] };

export class Changes {
  /** What somebody is asked about in a dialog. */
  asked = $state.raw<Asked>();

  constructor(
    readonly folder: Folder,
    /** Shows a row and makes it the active one. */
    readonly reveal: (id: string) => Promise<void> | undefined,
  ) {}

  get #client(): SynclineClient {
    return this.folder.client;
  }

  get #workspace(): string {
    return this.folder.workspace;
  }

  /** Makes a folder; the dialog tells what goes wrong. */
  async createFolder(path: NodePath, name: string): Promise<void> {
    const made = await this.#client.makeFolder(this.#workspace, joinPath(path, name));
    await this.folder.refresh();
    await this.reveal(made.id);
    notices.say(t().done.created(name));
  }

  async rename(node: Node, name: string): Promise<void> {
    const to = joinPath(parentOf(node.path), name);
    const [client, workspace] = [this.#client, this.#workspace];
    const now = await client.move(workspace, node.path, to, { ifMatch: node.etag });
    await this.folder.refresh();
    await this.reveal(node.id);
    const back = () => moveBack(client, workspace, [{ from: node.path, now }]);
    notices.say(t().done.renamed(name), this.#undoable(back));
  }

  /** Moves or copies nodes into a folder; the dialog tells what goes wrong. */
  async relocate(
    what: Relocation,
    nodes: readonly Node[],
    folder: NodePath,
    title: string,
  ): Promise<void> {
    const [client, workspace] = [this.#client, this.#workspace];
    const name = folder === ROOT ? title : nameOf(folder);
    let back: () => Promise<void>;
    if (what === 'move') {
      const moved = await moveAll(client, workspace, nodes, folder);
      back = () => moveBack(client, workspace, moved);
    } else {
      const copies = await copyAll(client, workspace, nodes, folder);
      back = () => deleteAll(client, workspace, copies);
    }
    await this.folder.refresh();
    notices.say(t().relocating.done[what](nodes.length, name), this.#undoable(back));
  }

  /** Deletes nodes so that it can be taken back; asks first where it cannot. */
  async delete(nodes: readonly Node[]): Promise<void> {
    await this.#attempt(async () => {
      const remembered = await remember(this.#client, this.#workspace, nodes);
      if (remembered === null) {
        this.asked = { kind: 'delete', nodes };
        return;
      }
      const back = () => restoreAll(this.#client, this.#workspace, remembered);
      await this.#deleteAndTell(nodes, this.#undoable(back));
    });
  }

  async deleteForGood(nodes: readonly Node[]): Promise<void> {
    await this.#attempt(() => this.#deleteAndTell(nodes));
  }

  /** Where one cannot be deleted it is told how many were before. */
  async #deleteAndTell(nodes: readonly Node[], undo?: () => Promise<void>): Promise<void> {
    const done: Node[] = [];
    try {
      await deleteAll(this.#client, this.#workspace, nodes, (node) => done.push(node));
    } finally {
      if (done.length > 0) notices.say(t().done.deleted(done.length, done[0]?.name ?? ''), undo);
    }
  }

  #undoable(deed: () => Promise<void>): () => Promise<void> {
    return () =>
      this.#attempt(async () => {
        await deed();
        notices.say(t().done.undone);
      });
  }

  async #attempt(deed: () => Promise<void>): Promise<void> {
    try {
      await deed();
    } catch (error) {
      notices.fail(problemText(error, t()));
    }
    await this.folder.refresh();
  }
}
