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

/** Makes an empty file for so many bytes; nothing where the browser keeps none that a page can write, or has too little room. */
export async function scratchFile(length: number): Promise<FileSystemFileHandle | null> {
  try {
    if (!('createWritable' in FileSystemFileHandle.prototype)) return null;
    const { quota = 0, usage = 0 } = await navigator.storage.estimate();
    if (quota - usage < COPIES * length) return null;
    const all = await folder({ create: true });
    const own = await all.getDirectoryHandle(PAGE, { create: true });
    return await own.getFileHandle(randomHex(8), { create: true });
  } catch {
    // As in private windows of some browsers.
    return null;
  }
}

/** Removes one of this page. */
export async function forgetScratchFile({ name }: FileSystemFileHandle): Promise<void> {
  try {
    await (await (await folder()).getDirectoryHandle(PAGE)).removeEntry(name);
  } catch {
    return;
  }
}

/** Removes those of the pages that `isGone` names. */
async function forgetWhere(isGone: (page: string) => boolean): Promise<void> {
  try {
    const all = await folder();
    const pages: string[] = [];
    for await (const page of all.keys()) pages.push(page);
    for (const page of pages.filter(isGone)) {
      await all.removeEntry(page, { recursive: true }).catch(() => undefined);
    }
  } catch {
    return;
  }
}

/** Removes those of this page, as when somebody signs out. */
export const forgetScratchFiles = () => forgetWhere((page) => page === PAGE);

/** Removes those of pages that are gone. */
async function sweep(): Promise<void> {
  const isLive = await livePages();
  await forgetWhere((page) => !isLive(page));
}

void sweep();
