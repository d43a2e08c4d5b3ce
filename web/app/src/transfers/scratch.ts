// Files in the private file system of the browser: what is gathered there is not in memory. Those of a page lie in a folder of its own, and go
// when somebody signs out, or when a page comes after it: nobody tells when the browser has copied one to where it saves.

import { randomHex } from '@syncline/api';
import { livePages, PAGE } from './pages.ts';

const FOLDER = 'downloads';

/** What is gathered is there twice while the browser saves it. */
const COPIES = 2;

const folder = async ({ create = false } = {}) => {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create });
};

/** How long those will be that are not whole yet. */
const expected = new Map<string, number>();

/** A file that is open for writing. */
export interface OpenFile {
  file: FileSystemFileHandle;
  writable: FileSystemWritableFileStream;
}

/** Opens an empty file for so many bytes; nothing where the browser keeps none that a page can write, or has too little room. */
export async function openScratchFile(length: number): Promise<OpenFile | null> {
  const name = randomHex(8);
  const others = [...expected.values()].reduce((sum, one) => sum + one, 0);
  expected.set(name, length);
  try {
    const { quota = 0, usage = 0 } = await navigator.storage.estimate();
    if (quota - usage < COPIES * (others + length)) throw new RangeError('too little room');
    const all = await folder({ create: true });
    const own = await all.getDirectoryHandle(PAGE, { create: true });
    const file = await own.getFileHandle(name, { create: true });
    return { file, writable: await file.createWritable() };
  } catch {
    // As in private windows of some browsers.
    expected.delete(name);
    return null;
  }
}

/** Takes note that one is whole: the browser counts its bytes. */
export function rememberWhole({ name }: FileSystemFileHandle): void {
  expected.delete(name);
}

/** Removes one of this page. */
export async function forgetScratchFile({ name }: FileSystemFileHandle): Promise<void> {
  expected.delete(name);
  try {
    await (await (await folder()).getDirectoryHandle(PAGE)).removeEntry(name);
  } catch {
    return;
  }
}

/** Removes those of the pages that `isGone` names, once they were found. */
async function forgetWhere(isGone: () => Promise<(page: string) => boolean>): Promise<void> {
  try {
    const all = await folder();
    const pages: string[] = [];
    for await (const page of all.keys()) pages.push(page);
    for (const page of pages.filter(await isGone())) {
      await all.removeEntry(page, { recursive: true }).catch(() => undefined);
    }
  } catch {
    return;
  }
}

/** Removes those of this page, as when somebody signs out: at once, and those that were written to once all was halted. */
export async function forgetScratchFiles(halted: Promise<unknown>[]): Promise<void> {
  await forgetOwn();
  await Promise.allSettled(halted);
  await forgetOwn();
}

/** Removes what nobody writes to any more. */
async function forgetOwn(): Promise<void> {
  try {
    const own = await (await folder()).getDirectoryHandle(PAGE);
    const names: string[] = [];
    for await (const name of own.keys()) names.push(name);
    for (const name of names) await own.removeEntry(name).catch(() => undefined);
  } catch {
    return;
  }
}

// Those of pages that are gone.
void forgetWhere(async () => {
  const isLive = await livePages();
  return (page) => !isLive(page);
});
