// What was on its way to the server, kept in the browser, so that it goes on after the page was loaded anew. The bytes are not kept: a file
// is found again by its handle where the browser has those, else by somebody who picks it again.

import { randomHex, type Condition, type NodePath } from '@syncline/api';
import { Database } from '../database.ts';

export interface Remembered {
  key: string;
  account: string;
  /** The page that has it. */
  page: string;
  workspace: string;
  path: NodePath;
  folders: NodePath[];
  name: string;
  size: number;
  modifiedMs: number;
  condition: Condition;
  /** The upload that the server knows. */
  upload: string | null;
  isPaused: boolean;
  handle: FileSystemFileHandle | null;
  /** What somebody has chosen: the file, or a folder that it is in. The browser asks about this. */
  root: FileSystemHandle | null;
}

/** What is to be remembered; to which page it belongs is known here. */
export type Unsent = Omit<Remembered, 'page'>;

const STORE = 'uploads';

const PAGE = randomHex(8);
const lockOf = (page: string) => `syncline-page-${page}`;

export const newKey = () => randomHex(12);

// While this page lives others leave alone what it sends.
if ('locks' in navigator) {
  void navigator.locks.request(lockOf(PAGE), () => new Promise(() => undefined)).catch(() => null);
}

async function livePages(): Promise<Set<string | undefined>> {
  if (!('locks' in navigator)) return new Set();
  return new Set(((await navigator.locks.query()).held ?? []).map(({ name }) => name));
}

const database = new Database('syncline-transfers', (made) => {
  made.createObjectStore(STORE, { keyPath: 'key' });
});

/** Changes what is kept. A browser that keeps nothing remembers nothing, and sends no less. */
async function change(deed: (store: IDBObjectStore) => void): Promise<void> {
  try {
    await database.transact([STORE], 'readwrite', (made) => deed(made.objectStore(STORE)));
  } catch {
    return;
  }
}

/** Remembers what is to be sent. */
export function remember(list: readonly Unsent[]): Promise<void> {
  return change((store) => {
    for (const one of list) store.put({ ...one, page: PAGE });
  });
}

/** Changes what is remembered, if it still is. */
export function amend(key: string, changes: Partial<Remembered>): Promise<void> {
  return change((store) => {
    const request = store.get(key);
    request.onsuccess = () => {
      const found = request.result as Remembered | undefined;
      if (found) store.put({ ...found, ...changes });
    };
  });
}

export function forget(keys: readonly string[]): Promise<void> {
  return change((store) => {
    for (const key of keys) store.delete(key);
  });
}

/** What an account was sending on pages that are gone, or on this one before it signed in; it belongs to this page from now on. */
export async function adopt(account: string): Promise<Remembered[]> {
  const live = await livePages();
  const adopted: Remembered[] = [];
  await change((store) => {
    const request = store.getAll();
    request.onsuccess = () => {
      for (const one of request.result as Remembered[]) {
        const isElsewhere = one.page !== PAGE && live.has(lockOf(one.page));
        if (one.account !== account || isElsewhere) continue;
        adopted.push(one);
        store.put({ ...one, page: PAGE });
      }
    };
  });
  return adopted;
}

/** Forgets all that an account was sending, as when it signs out. */
export function forgetAll(account: string): Promise<void> {
  return change((store) => {
    const request = store.getAll();
    request.onsuccess = () => {
      for (const one of request.result as Remembered[]) {
        if (one.account === account) store.delete(one.key);
      }
    };
  });
}
