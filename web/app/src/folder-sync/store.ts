// What the browser remembers of the folders that it keeps in sync, in IndexedDB: the handle of each, and its merge base row by row.

import type { NodePath } from '@syncline/api';
import { Database } from '../database.ts';
import type { Head } from './history.ts';
import type { Base } from './plan.ts';
import type { Rows } from './ports.ts';

/** A folder that is kept in sync, or was dropped before. */
export interface Pair {
  id: string;
  account: string;
  workspace: string;
  /** What the folder of the workspace is called, for people. */
  title: string;
  path: NodePath;
  node: string | null;
  /** Whether the workspace is encrypted; its folders have no paths that a server knows, and `path` is the root. */
  isSealed?: boolean;
  /** What this browser is called; it stands in the names of copies. */
  device: string;
  /** What the folder of the disk is called. */
  name: string;
  /** Nothing where the browser gives none: then it was dropped. */
  handle: FileSystemDirectoryHandle | null;
  isPaused: boolean;
  /** Where the history of the workspace was when its rows were written. */
  head?: Head | null;
  lastSyncMs: number | null;
}

const database = new Database('syncline-folder-sync', (made) => {
  made.createObjectStore('pairs', { keyPath: 'id' });
  made.createObjectStore('rows');
});

async function inStore<Answer>(
  store: 'pairs' | 'rows',
  mode: IDBTransactionMode,
  ask: (store: IDBObjectStore) => IDBRequest<Answer>,
): Promise<Answer> {
  const deed = (transaction: IDBTransaction) => ask(transaction.objectStore(store));
  // What the merge base says has happened: it may not be forgotten with the power.
  return (await database.transact([store], mode, deed, { durability: 'strict' })).result;
}

/** All keys of the rows of a folder. */
const rangeOf = (pair: string) => IDBKeyRange.bound([pair, ''], [pair, []]);

async function allPairs(): Promise<Pair[]> {
  return (await inStore('pairs', 'readonly', (store) => store.getAll())) as Pair[];
}

export async function pairsOf(account: string): Promise<Pair[]> {
  return (await allPairs()).filter((pair) => pair.account === account);
}

export async function savePair(pair: Pair): Promise<void> {
  await inStore('pairs', 'readwrite', (store) => store.put(pair));
}

/** Saves what is new of a folder, and nothing else: another tab may have saved that. Says whether it is still one, for that tab may have forgotten it. */
export async function updatePair(id: string, change: Partial<Pair>): Promise<boolean> {
  let isKept = false;
  await inStore('pairs', 'readwrite', (store) => {
    const request = store.get(id) as IDBRequest<Pair | undefined>;
    request.onsuccess = () => {
      if (!request.result) return;
      isKept = true;
      store.put({ ...request.result, ...change });
    };
    return request;
  });
  return isKept;
}

/** Forgets all rows of a folder. */
function dropRows(id: string): Promise<unknown> {
  return inStore('rows', 'readwrite', (store) => store.delete(rangeOf(id)));
}

/** Forgets a folder. Neither side is touched. */
export async function forgetPair(id: string): Promise<void> {
  await inStore('pairs', 'readwrite', (store) => store.delete(id));
  await dropRows(id);
}

/**
 * Forgets what the folders of a workspace had in common with it: its server was set back, and shows other things by the numbers that they had.
 * What is equal becomes one again, and all else is kept beside each other.
 */
export async function forgetRows(workspace: string): Promise<void> {
  const pairs = (await allPairs()).filter((pair) => pair.workspace === workspace);
  for (const { id } of pairs) await dropRows(id);
}

export class StoredRows implements Rows {
  constructor(readonly pair: string) {}

  async all(): Promise<Map<string, Base>> {
    const range = rangeOf(this.pair);
    const keys = await inStore('rows', 'readonly', (store) => store.getAllKeys(range));
    const rows = (await inStore('rows', 'readonly', (store) => store.getAll(range))) as Base[];
    const paths = (keys as [string, string][]).map(([, path]) => path);
    return new Map(rows.map((row, at) => [paths[at] ?? '', row]));
  }

  async set(path: string, row: Base): Promise<void> {
    await inStore('rows', 'readwrite', (store) => store.put(row, [this.pair, path]));
  }

  async delete(path: string): Promise<void> {
    await inStore('rows', 'readwrite', (store) => store.delete([this.pair, path]));
  }

  async head(): Promise<Head | null> {
    const pair = (await inStore('pairs', 'readonly', (store) => store.get(this.pair))) as
      Pair | undefined;
    return pair?.head ?? null;
  }

  async setHead(head: Head): Promise<void> {
    await updatePair(this.pair, { head });
  }

  async clear(): Promise<void> {
    await dropRows(this.pair);
    await updatePair(this.pair, { head: null });
  }
}
