// Sketches of files that were sent from this browser, by which the next version of each is sent in one request: the core says what a sketch
// is (`Delta.kept`). They are a cache. Where there is none, or the server has something else, its chunk list is asked for instead.
// With the sketch of a short file lie its bytes, unless the session ends with the tab: with a sketch each place of a change costs some 260
// bytes, with the bytes some ten.

import { Database } from '../database.ts';

/** A sketch, and what else a delta needs that never changes. */
export interface Sketch {
  /** The encoded genesis of the workspace, where it is a plain one. */
  genesis?: Uint8Array<ArrayBuffer> | undefined;
  /** About 2.5 % of the file; in an encrypted workspace 5.5 %, which nobody reads without its keys. */
  bytes: Uint8Array<ArrayBuffer>;
  /** The file. */
  old?: Blob | undefined;
}

/** Of a sketch, what is looked at without reading it. */
interface Use {
  /** The workspace and the version of the node. */
  key: string;
  length: number;
  madeMs: number;
}

/** How many bytes all have at most, sketches and files; the newest stay. */
export const SKETCHES_LENGTH_MAX = 256 * 1024 * 1024;
/** How many there are at most. */
export const SKETCHES_MAX = 4096;
/** After so many bytes it is looked whether all are too long: that costs as much as there are, however short the new one is. */
const LOOK_LENGTH = 1024 * 1024;
/** What keeping one costs, however short it is, counts as so many bytes. */
const KEEPING_LENGTH = 16 * 1024;
/** A longer sketch is not kept. One that is sealed has a power of two of bytes, and some more. */
export const SKETCH_LENGTH_MAX = 16 * 1024 * 1024 + 1024;
/** The bytes of a longer file are not kept. */
export const OLD_LENGTH_MAX = 8 * 1024 * 1024;

const SKETCHES = 'sketches';
const USES = 'uses';

const database = new Database('syncline-sketches', (made) => {
  made.createObjectStore(SKETCHES);
  made.createObjectStore(USES, { keyPath: 'key' });
});

/** A tag (`ETag`) names a node and its version; in an encrypted workspace a name of the content stands in its place. */
const keyOf = (workspace: string, etag: string) => `${workspace} ${etag}`;

/** Says which sketches have to go so that the rest are not longer and not more than they may be: the oldest. */
export function surplus(
  uses: readonly Use[],
  lengthMax = SKETCHES_LENGTH_MAX,
  countMax = SKETCHES_MAX,
): string[] {
  let rest = lengthMax;
  return [...uses]
    .sort((one, other) => other.madeMs - one.madeMs)
    .filter(({ length }, place) => (rest -= length) < 0 || place >= countMax)
    .map(({ key }) => key);
}

/** How often somebody has ceased to be signed in here. */
let timesForgotten = 0;

/** Says since when somebody is signed in: another number is another time. */
export const signedInSince = () => timesForgotten;

/** How many bytes were kept since it was looked whether all are too long; more than that before the first look. */
let unlooked = Infinity;

interface Stores {
  sketches: IDBObjectStore;
  uses: IDBObjectStore;
}

/** Does something to what is kept; tells whether it was done. A browser that keeps nothing has no sketch, and asks once more. */
async function inStores(
  mode: IDBTransactionMode,
  deed: (stores: Stores) => void,
): Promise<boolean> {
  try {
    await database.transact([SKETCHES, USES], mode, (made) =>
      deed({ sketches: made.objectStore(SKETCHES), uses: made.objectStore(USES) }),
    );
    return true;
  } catch {
    return false;
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

/** The places of a version, and of the one before it. */
export interface Succession {
  workspace: string;
  etag: string;
  before: string | null;
}

/** Keeps the sketch of a version in the place of that of the version before it, and its bytes where there is room for them. */
export async function keepSketch(succession: Succession, sketch: Sketch): Promise<void> {
  const before = timesForgotten;
  if (await keep(succession, sketch)) return;
  // The disk is full, or the file is not what it was when it was sent. What is only a cache takes no room from others.
  await forgetAll();
  if (timesForgotten > before) return;
  const { genesis, bytes } = sketch;
  await keep(succession, { genesis, bytes });
}

function keep({ workspace, etag, before }: Succession, sketch: Sketch): Promise<boolean> {
  const { genesis, bytes, old } = sketch;
  const length = (genesis?.length ?? 0) + bytes.length + (old?.size ?? 0);
  return inStores('readwrite', (stores) => {
    if (before !== null) remove(stores, keyOf(workspace, before));
    if (bytes.length > SKETCH_LENGTH_MAX) return;
    const key = keyOf(workspace, etag);
    stores.sketches.put(sketch, key);
    stores.uses.put({ key, length, madeMs: Date.now() } satisfies Use);
    unlooked += length + KEEPING_LENGTH;
    if (unlooked < LOOK_LENGTH) return;
    unlooked = 0;
    const all = stores.uses.getAll();
    all.onsuccess = () => {
      for (const old of surplus(all.result as Use[])) remove(stores, old);
    };
  });
}

export async function forgetSketch(workspace: string, etag: string): Promise<void> {
  await inStores('readwrite', (stores) => remove(stores, keyOf(workspace, etag)));
}

/** Forgets all, since nobody is signed in any more. */
export function forgetSketches(): Promise<void> {
  timesForgotten++;
  return forgetAll();
}

async function forgetAll(): Promise<void> {
  const isDone = await inStores('readwrite', ({ sketches, uses }) => {
    sketches.clear();
    uses.clear();
  });
  if (isDone) return;
  // A disk that is full may have no room to write that something is gone.
  await database.remove();
}
