// What was on its way when the page went away, and waits for its file.

import { session } from '../sign-in/session.svelte.ts';
import type { Chosen } from './dropped.ts';
import { isSame, match, type Found } from './matching.ts';
import { remembered, type Unsent } from './remembered.ts';
import { endUploads } from './upload.ts';

interface Asking {
  queryPermission(options: { mode: 'read' }): Promise<PermissionState>;
  requestPermission(options: { mode: 'read' }): Promise<PermissionState>;
}

async function isAllowed(root: FileSystemHandle | null, isAsking: boolean): Promise<boolean> {
  if (!root) return false;
  const asked = root as FileSystemHandle & Asking;
  const options = { mode: 'read' } as const;
  try {
    if ((await asked.queryPermission(options)) === 'granted') return true;
    return isAsking && (await asked.requestPermission(options)) === 'granted';
  } catch {
    return false;
  }
}

class Unfinished {
  list = $state.raw<Unsent[]>([]);

  /** How many the browser itself can find again, if it may. */
  get reachable(): number {
    return this.list.filter(({ handle }) => handle !== null).length;
  }

  /** Finds out what an account was sending, and returns what can go on without asking anybody. */
  async load(account: string): Promise<Found[]> {
    const list = await remembered.adopt(account);
    if (session.account !== account) return [];
    this.list = [...this.list, ...list];
    const found = await this.#reach(false);
    // It takes long where there are many, and somebody else may have signed in.
    return session.account === account ? found : [];
  }

  /** Asks for the files that the browser can find again; to be called right after a press of a button. */
  reach(): Promise<Found[]> {
    return this.#reach(true);
  }

  /** Returns what goes on with files that somebody picked again. */
  pick(chosen: readonly Chosen[]): Found[] {
    return this.#take(match(this.list, chosen, ({ folders }) => folders.length > 0));
  }

  /** What is remembered of a file that somebody sends to the same place again. */
  claim(record: Unsent): Unsent | undefined {
    const { workspace, path, name, size, modifiedMs: lastModified } = record;
    const file = { name, size, lastModified };
    const found = this.list.find(
      (one) => one.workspace === workspace && one.path === path && isSame(one, file),
    );
    if (!found) return undefined;
    this.list = this.list.filter((one) => one !== found);
    const { handle, root } = record;
    return { ...found, handle, root, isPaused: false };
  }

  /** Gives all of it up, here and at the server. */
  async giveUp(): Promise<void> {
    const list = this.list;
    this.list = [];
    await remembered.forget(list.map(({ key }) => key));
    for (const one of list) await endUploads(session.client, one);
  }

  clear(): void {
    this.list = [];
  }

  async #reach(isAsking: boolean): Promise<Found[]> {
    const answers = new Map<FileSystemHandle | null, boolean>();
    const found: Found[] = [];
    for (const record of this.list) {
      const root = await this.#knownRoot(record.root, [...answers.keys()]);
      if (!answers.has(root)) answers.set(root, await isAllowed(root, isAsking));
      if (!record.handle || answers.get(root) !== true) continue;
      const file = await record.handle.getFile().catch(() => null);
      // What has changed meanwhile is sent as it is now, from its start.
      if (file) found.push({ record: isSame(record, file) ? record : renewed(record, file), file });
    }
    return this.#take(found);
  }

  /** The same folder comes back as another object for each file that was in it. */
  async #knownRoot(
    root: FileSystemHandle | null,
    known: readonly (FileSystemHandle | null)[],
  ): Promise<FileSystemHandle | null> {
    for (const one of known) if (root && one && (await one.isSameEntry(root))) return one;
    return root;
  }

  #take(found: Found[]): Found[] {
    const keys = new Set(found.map(({ record }) => record.key));
    this.list = this.list.filter(({ key }) => !keys.has(key));
    return found;
  }
}

function renewed(record: Unsent, file: File): Unsent {
  const anew = { upload: null, digest: null, delta: null };
  return { ...record, size: file.size, modifiedMs: file.lastModified, ...anew };
}

export const unfinished = new Unfinished();
