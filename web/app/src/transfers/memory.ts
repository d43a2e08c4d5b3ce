// What pages were sending, kept in a database of the browser for the page that comes after them. While a page lives, others leave alone what it
// sends.

import { randomHex } from '@syncline/api';
import { Database } from '../database.ts';
import { livePages, PAGE } from './pages.ts';

export interface Kept {
  key: string;
  account: string;
  /** The page that has it. */
  page: string;
}

const STORE = 'uploads';

export const newKey = () => randomHex(12);

export class Memory<One extends Kept> {
  readonly #database: Database;

  constructor(name: string) {
    this.#database = new Database(name, (made) => {
      made.createObjectStore(STORE, { keyPath: 'key' });
    });
  }

  /** Changes what is kept. A browser that keeps nothing remembers nothing, and sends no less. */
  async #change(deed: (store: IDBObjectStore) => void): Promise<void> {
    try {
      await this.#database.transact([STORE], 'readwrite', (made) => deed(made.objectStore(STORE)));
    } catch {
      return;
    }
  }

  /** Does something with each that is kept. */
  #each(deed: (one: One, store: IDBObjectStore) => void): Promise<void> {
    return this.#change((store) => {
      const request = store.getAll();
      request.onsuccess = () => {
        for (const one of request.result as One[]) deed(one, store);
      };
    });
  }

  /** Remembers what is to be sent. */
  remember(list: readonly Omit<One, 'page'>[]): Promise<void> {
    return this.#change((store) => {
      for (const one of list) store.put({ ...one, page: PAGE });
    });
  }

  /** Changes what is remembered, if it still is. */
  amend(key: string, changes: Partial<One>): Promise<void> {
    return this.#change((store) => {
      const request = store.get(key);
      request.onsuccess = () => {
        const found = request.result as One | undefined;
        if (found) store.put({ ...found, ...changes });
      };
    });
  }

  forget(keys: readonly string[]): Promise<void> {
    return this.#change((store) => {
      for (const key of keys) store.delete(key);
    });
  }

  /** What an account was sending on pages that are gone, or on this one before it signed in; it belongs to this page from now on. */
  async adopt(account: string, isWanted: (one: One) => boolean = () => true): Promise<One[]> {
    const isLive = await livePages();
    const adopted: One[] = [];
    await this.#each((one, store) => {
      const isElsewhere = one.page !== PAGE && isLive(one.page);
      if (one.account !== account || isElsewhere || !isWanted(one)) return;
      adopted.push(one);
      store.put({ ...one, page: PAGE });
    });
    return adopted;
  }

  /** Forgets all that an account was sending, as when it signs out; pages that are signed in by themselves go on. */
  async forgetAll(account: string): Promise<void> {
    const isLive = await livePages();
    await this.#each((one, store) => {
      const isElsewhere = one.page !== PAGE && isLive(one.page);
      if (one.account === account && !isElsewhere) store.delete(one.key);
    });
  }
}
