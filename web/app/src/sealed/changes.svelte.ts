// What somebody does to a folder of an encrypted workspace: make, rename, move, copy, delete, and take it back.

import type { Node } from '@syncline/api';
import type { SealedDone } from '@syncline/core';
import { freeName } from '../files/names.ts';
import type { Place, Relocation } from '../files/relocating.ts';
import { notices } from '../shell/notices.svelte.ts';
import { SEALED_ROOT } from '../shell/route.ts';
import { problemText } from '../words/problem.ts';
import { t } from '../words/words.svelte.ts';
import type { SealedFolder } from './view.svelte.ts';

export type Asked =
  /** In the folder that was shown when it was asked. */
  | { kind: 'create'; folder: string }
  | { kind: 'rename'; node: Node; folder: string }
  | { kind: Relocation; nodes: readonly Node[] };

export class SealedActs {
  /** What somebody is asked about in a dialog. */
  asked = $state.raw<Asked>();

  constructor(
    readonly view: SealedFolder,
    /** Shows a row and makes it the active one. */
    readonly reveal: (id: string) => Promise<void> | undefined,
  ) {}

  /** Makes a folder; the dialog tells what goes wrong. */
  async createFolder(folder: string, name: string): Promise<void> {
    const done = await this.view.open.changes.makeFolder(folder, name);
    await this.#show(done);
    notices.say(t().done.created(name));
  }

  /** Renames a node where somebody has seen it; the dialog tells what goes wrong. Where others were first, what they did is let be. */
  async rename(folder: string, node: Node, name: string): Promise<void> {
    const { id, version } = this.#shownNow(folder, node);
    const renamed = await this.view.open.changes.move([{ id, version, name }], folder);
    await this.#show({ ...renamed, node: id });
    if (!renamed.isPartial) notices.say(t().done.renamed(name), this.#undoable(renamed.undo));
  }

  /** What is shown of a node by now, as long as it has its name and its place: a name takes nothing from who changes what is in it. */
  #shownNow(folder: string, node: Node): Node {
    const { nodes, way } = this.view;
    const isShown = (way.at(-1)?.id ?? SEALED_ROOT) === folder;
    const found = nodes.find(({ id, name }) => id === node.id && name === node.name);
    return isShown && found ? found : node;
  }

  /** Moves nodes, each only in the version that was seen; the dialog tells what goes wrong. */
  async move(nodes: readonly Node[], { id, name }: Place): Promise<void> {
    const moved = await this.view.open.changes.move(nodes, id);
    if (moved.isPartial) notices.fail(t().sealed.partial);
    await this.view.refresh();
    notices.say(t().relocating.done.move(nodes.length, name), this.#undoable(moved.undo));
  }

  /** The same, where a name is taken under one that is free. */
  async moveBeside(nodes: readonly Node[], place: Place): Promise<void> {
    await this.move(await this.#freelyNamed(nodes, place), place);
  }

  /** Copies nodes, where a name is taken under one that is free; the dialog tells what goes wrong. */
  async copy(nodes: readonly Node[], place: Place): Promise<void> {
    const named = await this.#freelyNamed(nodes, place);
    const copied = await this.view.open.changes.copy(named, place.id);
    if (copied.isPartial) notices.fail(t().sealed.partial);
    await this.view.refresh();
    notices.say(t().relocating.done.copy(nodes.length, place.name), this.#undoable(copied.undo));
  }

  /** The nodes under names that are free in a folder: their own, or others. */
  async #freelyNamed(nodes: readonly Node[], place: Place): Promise<Node[]> {
    await this.view.open.catchUp();
    const names = new Set((await this.view.open.list(place.id)).map(({ name }) => name));
    const isTaken = (name: string) => Promise.resolve(names.has(name));
    const renamed: Node[] = [];
    for (const node of nodes) {
      const name = names.has(node.name) ? await freeName(node.name, isTaken) : node.name;
      names.add(name);
      renamed.push({ ...node, name });
    }
    return renamed;
  }

  async delete(nodes: readonly Node[]): Promise<void> {
    await this.#attempt(async () => {
      const removal = await this.view.open.changes.remove(nodes);
      if (removal.isPartial) notices.fail(t().sealed.partial);
      const text = t().done.deleted(nodes.length, nodes[0]?.name ?? '');
      notices.say(text, this.#undoable(removal.undo));
    });
  }

  async #show({ node, isPartial }: SealedDone): Promise<void> {
    if (isPartial) notices.fail(t().sealed.partial);
    await this.view.refresh();
    if (node !== null) await this.reveal(node);
  }

  #undoable(deed: () => Promise<SealedDone>): () => Promise<void> {
    return () =>
      this.#attempt(async () => {
        const { isPartial } = await deed();
        if (isPartial) notices.fail(t().sealed.partial);
        notices.say(t().done.undone);
      });
  }

  async #attempt(deed: () => Promise<void>): Promise<void> {
    try {
      await deed();
    } catch (error) {
      notices.fail(problemText(error, t()));
    }
    await this.view.refresh();
  }
}
