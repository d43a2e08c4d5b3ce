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
import { untrack } from 'svelte';
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
  // What would be sent again after somebody has signed out would go with the token of who signs in next.
  const until = unlocked.signal;
  return {
    genesis: () => fetchGenesis(client, workspace),
    lockedKeys: () => fetchLockedKeys(client, workspace),
    entries: (since, one, signal) =>
      fetchEntries(client, workspace, { since, lengthMax: one ? 1 : undefined, signal }),
    pack: (id, start, end, signal, memory) =>
      fetchPackPart(client, workspace, id, [start, end], { signal, memory }),
    putPack: (id, bytes, signal) => {
      const stop = signal ? AbortSignal.any([signal, until]) : until;
      return persistently(() => storePack(client, workspace, id, bytes, stop), stop);
    },
    commit: (message) => persistently(() => sendCommit(client, workspace, message), until),
    stored: storedIn(workspace),
    sketches: sketchesIn(workspace),
  };
}

function without<Value>(map: ReadonlyMap<string, Value>, id: string): Map<string, Value> {
  const rest = new Map(map);
  rest.delete(id);
  return rest;
}

/** In which workspace somebody has begun to read, as it was open then. */
interface Begun {
  id: string;
  open: SealedWorkspace;
}

interface Taking {
  /** The one of when somebody began to open it. */
  signal: AbortSignal;
  recoveryKey?: string;
}

class Unlocked {
  /** By the ids of the workspaces. */
  open = $state.raw<ReadonlyMap<string, SealedWorkspace>>(new Map());
  /** The recovery keys of those that were made here, until somebody says that they have theirs. */
  unkept = $state.raw<ReadonlyMap<string, string>>(new Map());
  #used = Date.now();
  #until = new AbortController();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Unlocks a workspace, one's own or somebody else's; nothing of it is read yet. */
  async unlock(
    client: SynclineClient,
    { id, isOwn }: { id: string; isOwn: boolean },
    secret: string,
  ): Promise<void> {
    const { signal } = this;
    const { SealedWorkspace } = await import('@syncline/core');
    const { device_id, device_name, account } = await client.whoAmI();
    signal.throwIfAborted();
    const source = sourceOf(client, id, isOwn ? null : account);
    const device = { id: device_id, name: device_name };
    const workspace = await SealedWorkspace.open({ id, secret, device, source, seen: seenOf(id) });
    this.take(id, workspace, { signal });
  }

  /**
   * Says stop, with an error whose code is `locked`, as soon as all is locked, as when somebody signs out: whoever begins something gets it
   * then, since what they have begun is nothing of who comes next.
   */
  get signal(): AbortSignal {
    return this.#until.signal;
  }

  /**
   * Takes one that is open, and shows before anything else of it the recovery key of one that was made here. Where whoever has begun to open
   * it has signed out, it is locked at once, and nothing of it shown.
   */
  take(id: string, workspace: SealedWorkspace, { signal, recoveryKey }: Taking): void {
    if (signal.aborted) void workspace.lock();
    signal.throwIfAborted();
    noteSealed(id);
    if (recoveryKey !== undefined) this.unkept = new Map(this.unkept).set(id, recoveryKey);
    const before = this.open.get(id);
    this.open = new Map(this.open).set(id, workspace);
    void before?.lock();
    this.#watch();
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
    this.#until.abort(Object.assign(new Error('all was locked meanwhile'), { code: 'locked' }));
    this.#until = new AbortController();
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

  /** Who goes on with something after it was locked and unlocked again goes on in the one that is open now. */
  #now({ id, open }: Begun): SealedWorkspace {
    return untrack(() => this.open.get(id)) ?? open;
  }

  /** Reads a file; as long as it is read, somebody is there. */
  read(begun: Begun, what: SealedContent, size: number, signal: AbortSignal): FileAnswer {
    const body = this.#now(begun).files.read(what, { signal, onBytes: () => this.use() });
    return { body, size };
  }

  /** Reads a folder with everything in it as a ZIP file, as long as somebody is there. */
  archive(begun: Begun, folder: string, signal: AbortSignal): Promise<FileAnswer> {
    return this.#now(begun).files.archive(folder, { signal, onBytes: () => this.use() });
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
