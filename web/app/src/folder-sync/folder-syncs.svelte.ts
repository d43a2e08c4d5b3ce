// All folders that this browser keeps in sync for who is signed in. They are kept wherever in the app somebody is.

import { randomHex } from '@syncline/api';
import { session } from '../sign-in/session.svelte.ts';
import { isKeptByDevice } from './entries.ts';
import { FolderSync } from './folder-sync.svelte.ts';
import { setHasFolders } from './remembered.ts';
import { forgetPair, pairsOf, savePair, updatePair, type Pair } from './store.ts';
import { hearOthers, tellOthers } from './tabs.ts';

/** Why a folder cannot be kept in sync. */
export class CannotKeep extends Error {
  override readonly name = 'CannotKeep';

  constructor(readonly reason: 'device' | 'twice') {
    super(reason);
  }
}

export type Target = Pick<Pair, 'workspace' | 'title' | 'path' | 'node' | 'isSealed'>;

export const newId = () => randomHex(16);

class FolderSyncs {
  list = $state.raw<FolderSync[]>([]);
  /** Folders that were dropped before. */
  dropped = $state.raw<Pair[]>([]);
  isLoaded = $state(false);
  failure = $state.raw<unknown>();
  #account: string | null = null;

  /** Keeps the folders of an account, and none of anybody else. */
  async begin(account: string | null): Promise<void> {
    if (account === this.#account) return;
    this.#account = account;
    for (const sync of this.list) sync.stop();
    [this.list, this.dropped, this.isLoaded, this.failure] = [[], [], false, undefined];
    if (account === null) return;
    try {
      const pairs = await pairsOf(account);
      if (account !== this.#account) return;
      this.dropped = pairs.filter(({ handle }) => handle === null);
      this.list = pairs.flatMap((pair) =>
        pair.handle ? [new FolderSync(session.client, pair, pair.handle)] : [],
      );
      // Where only a part of what the browser keeps was wiped.
      if (this.list.length > 0) setHasFolders();
      for (const sync of this.list) if (!sync.pair.isPaused) sync.start();
    } catch (error) {
      this.failure = error;
    }
    this.isLoaded = true;
  }

  /** Begins to keep a folder in sync; throws [CannotKeep]. */
  async add(handle: FileSystemDirectoryHandle, target: Target): Promise<FolderSync> {
    if (await isKeptByDevice(handle)) throw new CannotKeep('device');
    const pair = await this.#pairOf(target, handle.name, handle);
    // Another tab may keep it, or begin to just now.
    await navigator.locks.request('syncline folder sync', async () => {
      for (const { handle: other } of await pairsOf(pair.account)) {
        if (!other) continue;
        if ((await other.resolve(handle)) ?? (await handle.resolve(other))) {
          throw new CannotKeep('twice');
        }
      }
      await savePair(pair);
    });
    setHasFolders();
    const sync = new FolderSync(session.client, pair, handle);
    this.list = [...this.list, sync];
    sync.start();
    return sync;
  }

  async #pairOf(
    target: Target,
    name: string,
    handle: FileSystemDirectoryHandle | null,
  ): Promise<Pair> {
    const { account, device_name: device } = await session.client.whoAmI();
    const state = { isPaused: false, lastSyncMs: null };
    return { id: newId(), account, device, name, handle, ...state, ...target };
  }

  /** The memory of a folder that is dropped; a new one where it was not dropped there before. */
  async droppedPair(target: Target, name: string): Promise<Pair> {
    const { workspace, path, node } = target;
    const isIt = (pair: Pair) =>
      pair.workspace === workspace &&
      pair.path === path &&
      pair.node === node &&
      pair.name === name;
    return this.dropped.find(isIt) ?? this.#pairOf(target, name, null);
  }

  async wasDropped(pair: Pair): Promise<void> {
    const lastSyncMs = Date.now();
    const now = { ...pair, lastSyncMs };
    // What is noted with it since it was read stays.
    if (!(await updatePair(pair.id, { lastSyncMs }))) await savePair(now);
    this.dropped = [...this.dropped.filter(({ id }) => id !== pair.id), now];
  }

  /** Keeps a folder no longer. Neither side is touched. */
  async remove(id: string): Promise<void> {
    this.leave(id);
    await forgetPair(id);
    tellOthers({ id, isRemoved: true });
  }

  /** What was removed here, or in another tab, is not shown any more. */
  leave(id: string): void {
    this.list.find((sync) => sync.pair.id === id)?.stop();
    this.list = this.list.filter((sync) => sync.pair.id !== id);
    this.dropped = this.dropped.filter((pair) => pair.id !== id);
  }
}

export const folderSyncs = new FolderSyncs();

hearOthers((said) => {
  if ('isRemoved' in said) folderSyncs.leave(said.id);
  else folderSyncs.list.find((sync) => sync.pair.id === said.id)?.heed(said.isPaused);
});

// It goes with the session: whoever signs in next finds none of these.
$effect.root(() => {
  $effect(() => {
    void folderSyncs.begin(session.account);
  });
});
