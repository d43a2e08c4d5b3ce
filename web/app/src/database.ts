// A database of the browser (IndexedDB): opened with its first use, and anew where the browser could not open it, or has closed it.

export class Database {
  readonly #name: string;
  readonly #make: (database: IDBDatabase) => void;
  #opening: Promise<IDBDatabase> | undefined;

  /** `make` makes the stores of a database that is new. */
  constructor(name: string, make: (database: IDBDatabase) => void) {
    this.#name = name;
    this.#make = make;
  }

  #open(): Promise<IDBDatabase> {
    this.#opening ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(this.#name, 1);
      request.onupgradeneeded = () => this.#make(request.result);
      request.onsuccess = () => {
        const database = request.result;
        // Somebody has wiped what the browser keeps: from now on it keeps anew.
        database.onclose = () => this.#forget();
        // Another tab has it removed, and would wait for this one.
        database.onversionchange = () => {
          database.close();
          this.#forget();
        };
        resolve(database);
      };
      request.onerror = () => {
        this.#forget();
        reject(request.error ?? new Error('the browser keeps nothing'));
      };
    });
    return this.#opening;
  }

  #forget(): void {
    this.#opening = undefined;
  }

  /** Does something in a transaction, and returns once that has ended what the deed has returned: its requests are answered then. */
  async transact<Answer>(
    stores: string[],
    mode: IDBTransactionMode,
    deed: (transaction: IDBTransaction) => Answer,
    options?: IDBTransactionOptions,
  ): Promise<Answer> {
    const transaction = (await this.#open()).transaction(stores, mode, options);
    const answer = deed(transaction);
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error('it was not kept'));
      // Where somebody wipes what the browser keeps, a transaction that begins then fails, and never aborts.
      transaction.onerror = ({ target }) =>
        reject((target instanceof IDBRequest && target.error) || new Error('it was not kept'));
    });
    return answer;
  }

  /** Removes it; the next use makes it anew. */
  async remove(): Promise<void> {
    const database = await this.#opening?.catch(() => undefined);
    database?.close();
    this.#forget();
    indexedDB.deleteDatabase(this.#name);
  }
}
