// The encrypted workspaces that are open in this tab. Their keys are in workers, in memory only, and overwritten when nobody has used
// the page for a while.

import {
  fetchEntries,
  fetchEnvelope,
  fetchGenesis,
  fetchIdentity,
  fetchLockedKeys,
  fetchPackPart,
  sendCommit,
  storePack,
  type FileAnswer,
  type SynclineClient,
} from '@syncline/api';
import type { SealedContent, SealedSource, SealedWorkspace } from '@syncline/core';
import { persistently } from './persistently.ts';
import { noteSealed, seenOf } from './seen.ts';
import { sketchesIn } from './sketches.ts';
import { storedIn } from './stored.ts';

/** After so many minutes without use a workspace is locked. */
export const IDLE_MINUTES = 10;

const CHECKED_EVERY_MS = 15_000;

/** Where a workspace comes from: one's own, or somebody else's that is opened as a user. */
export function sourceOf(
  client: SynclineClient,
  workspace: string,
  member: string | null = null,
): SealedSource {
  const own = ownSourceOf(client, workspace);
  if (member === null) return own;
  const membership = {
    identity: () => fetchIdentity(client),
    envelope: () => fetchEnvelope(client, workspace, member),
  };
  return { ...own, membership };
}

function ownSourceOf(client: SynclineClient, workspace: string): SealedSource {
  return {
    genesis: () => fetchGenesis(client, workspace),
    lockedKeys: () => fetchLockedKeys(client, workspace),
    entries: (since, one, signal) =>
      fetchEntries(client, workspace, { since, lengthMax: one ? 1 : undefined, signal }),
    pack: (id, start, end, signal, memory) =>
      fetchPackPart(client, workspace, id, [start, end], { signal, memory }),
    putPack: (id, bytes, signal) =>
      persistently(() => storePack(client, workspace, id, bytes, signal), signal),
    commit: (message) => persistently(() => sendCommit(client, workspace, message)),
    stored: storedIn(workspace),
    sketches: sketchesIn(workspace),
  };
}

function without<Value>(map: ReadonlyMap<string, Value>, id: string): Map<string, Value> {
  const rest = new Map(map);
  rest.delete(id);
  return rest;
}

class Unlocked {
  /** By the ids of the workspaces. */
  open = $state.raw<ReadonlyMap<string, SealedWorkspace>>(new Map());
  /** The recovery keys of those that were made here, until somebody says that they have theirs. */
  unkept = $state.raw<ReadonlyMap<string, string>>(new Map());
  #used = Date.now();
  /** How often all was locked, as when somebody signs out. */
  #lockings = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Unlocks a workspace, one's own or somebody else's; nothing of it is read yet. */
  async unlock(
    client: SynclineClient,
    { id, isOwn }: { id: string; isOwn: boolean },
    secret: string,
  ): Promise<void> {
    const lockings = this.#lockings;
    const { SealedWorkspace } = await import('@syncline/core');
    const { device_id, device_name, account } = await client.whoAmI();
    const source = sourceOf(client, id, isOwn ? null : account);
    const device = { id: device_id, name: device_name };
    const workspace = await SealedWorkspace.open({ id, secret, device, source, seen: seenOf(id) });
    if (lockings !== this.#lockings) {
      // Whoever gave the passphrase has signed out meanwhile.
      void workspace.lock();
      throw Object.assign(new Error('all was locked meanwhile'), { code: 'locked' });
    }
    this.take(id, workspace);
  }

  /** Takes one that is open. */
  take(id: string, workspace: SealedWorkspace): void {
    noteSealed(id);
    const before = this.open.get(id);
    this.open = new Map(this.open).set(id, workspace);
    void before?.lock();
    this.#watch();
  }

  /** Shows the recovery key of one that was made here before anything else of it. */
  show(id: string, recoveryKey: string): void {
    this.unkept = new Map(this.unkept).set(id, recoveryKey);
  }

  /** Somebody has kept the recovery key. */
  kept(id: string): void {
    this.unkept = without(this.unkept, id);
  }

  lock(id: string): void {
    const workspace = this.open.get(id);
    const rest = without(this.open, id);
    this.open = rest;
    this.kept(id);
    if (rest.size === 0) clearInterval(this.#timer);
    void workspace?.lock();
  }

  lockAll(): void {
    this.#lockings++;
    for (const id of this.open.keys()) this.lock(id);
  }

  /** Who writes the recovery key off its page uses nothing, and could not see it again. */
  #lockIdle(): void {
    for (const id of this.open.keys()) if (!this.unkept.has(id)) this.lock(id);
  }

  /** Somebody is there. */
  use(): void {
    this.#used = Date.now();
  }

  /** Reads a file; as long as it is read, somebody is there. */
  read(
    workspace: SealedWorkspace,
    what: SealedContent,
    size: number,
    signal: AbortSignal,
  ): FileAnswer {
    const body = workspace.files.read(what, { signal, onBytes: () => this.use() });
    return { body, size };
  }

  /** Reads a folder with everything in it as a ZIP file, as long as somebody is there. */
  archive(workspace: SealedWorkspace, folder: string, signal: AbortSignal): Promise<FileAnswer> {
    return workspace.files.archive(folder, { signal, onBytes: () => this.use() });
  }

  #watch(): void {
    this.use();
    clearInterval(this.#timer);
    // A computer that slept has not counted: what time it is decides.
    this.#timer = setInterval(() => {
      if (Date.now() - this.#used >= IDLE_MINUTES * 60_000) this.#lockIdle();
    }, CHECKED_EVERY_MS);
  }
}

export const unlocked = new Unlocked();

for (const name of ['pointerdown', 'keydown', 'wheel']) {
  addEventListener(name, () => unlocked.use(), { capture: true, passive: true });
}
