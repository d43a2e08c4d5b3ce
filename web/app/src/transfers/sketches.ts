// Sketches of files that were sent from this browser, by which the next version of each is sent in one request: the core says what a sketch
// is (`Delta.kept`). They are a cache. Where there is none, or the server has something else, its chunk list is asked for instead.

/** A sketch, and what else a delta needs that never changes. */
export interface Sketch {
  /** The encoded genesis of the workspace. */
  genesis: Uint8Array<ArrayBuffer>;
  /** About 2.5 % of the file. */
  bytes: Uint8Array<ArrayBuffer>;
}

/** Of a sketch, what is looked at without reading it. */
interface Use {
  /** The workspace and the version of the node. */
  key: string;
  length: number;
  madeMs: number;
}

/** How many bytes all sketches have at most; the newest stay. */
export const SKETCHES_LENGTH_MAX = 64 * 1024 * 1024;
/** A longer one is not kept. */
export const SKETCH_LENGTH_MAX = SKETCHES_LENGTH_MAX / 4;

const DATABASE = 'syncline-sketches';
const SKETCHES = 'sketches';
const USES = 'uses';

/** A tag (`ETag`) names a node and its version. */
const keyOf = (workspace: string, etag: string) => `${workspace} ${etag}`;

/** Says which sketches have to go so that the rest is not longer than it may be: the oldest. */
export function surplus(uses: readonly Use[], lengthMax = SKETCHES_LENGTH_MAX): string[] {
  let rest = lengthMax;
  return [...uses]
    .sort((one, other) => other.madeMs - one.madeMs)
    .filter(({ length }) => (rest -= length) < 0)
    .map(({ key }) => key);
}

let opening: Promise<IDBDatabase> | undefined;

function open(): Promise<IDBDatabase> {
  opening ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(SKETCHES);
      request.result.createObjectStore(USES, { keyPath: 'key' });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('the browser keeps nothing'));
  });
  return opening;
}

interface Stores {
  sketches: IDBObjectStore;
  uses: IDBObjectStore;
}

/** Does something to what is kept. A browser that keeps nothing has no sketch, and asks once more. */
async function inStores(mode: IDBTransactionMode, deed: (stores: Stores) => void): Promise<void> {
  try {
    const transaction = (await open()).transaction([SKETCHES, USES], mode);
    deed({
      sketches: transaction.objectStore(SKETCHES),
      uses: transaction.objectStore(USES),
    });
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error('it was not kept'));
    });
  } catch {
    return;
  }
}

function remove({ sketches, uses }: Stores, key: string): void {
  sketches.delete(key);
  uses.delete(key);
}

/** Returns the sketch of a version, if it is kept. */
export async function sketchOf(workspace: string, etag: string): Promise<Sketch | null> {
  let found: Sketch | undefined;
  await inStores('readonly', ({ sketches }) => {
    const request = sketches.get(keyOf(workspace, etag));
    request.onsuccess = () => (found = request.result as Sketch | undefined);
  });
  return found ?? null;
}

/** Keeps the sketch of a version in the place of that of the version before it. */
export function keepSketch(
  workspace: string,
  etag: string,
  before: string,
  sketch: Sketch,
): Promise<void> {
  const length = sketch.genesis.length + sketch.bytes.length;
  return inStores('readwrite', (stores) => {
    remove(stores, keyOf(workspace, before));
    if (length > SKETCH_LENGTH_MAX) return;
    const key = keyOf(workspace, etag);
    stores.sketches.put(sketch, key);
    stores.uses.put({ key, length, madeMs: Date.now() } satisfies Use);
    const all = stores.uses.getAll();
    all.onsuccess = () => {
      for (const old of surplus(all.result as Use[])) remove(stores, old);
    };
  });
}

export function forgetSketch(workspace: string, etag: string): Promise<void> {
  return inStores('readwrite', (stores) => remove(stores, keyOf(workspace, etag)));
}

/** Forgets all, as when somebody signs out. */
export function forgetSketches(): Promise<void> {
  return inStores('readwrite', ({ sketches, uses }) => {
    sketches.clear();
    uses.clear();
  });
}
