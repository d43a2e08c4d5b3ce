// What is in a picked folder. A folder that could not be listed whole is skipped: nothing in it is reported absent.

import { statOf } from './entries.ts';
import { below } from './engine.ts';
import { isName, isOwn } from './names.ts';
import type { Local } from './plan.ts';
import type { Tree } from './ports.ts';

export interface ScanOptions {
  signal: AbortSignal;
  now: () => number;
}

/** Lists a folder with all that is in it. */
export async function scanInto(
  tree: Tree<Local>,
  folder: FileSystemDirectoryHandle,
  path: string,
  how: ScanOptions,
): Promise<void> {
  for await (const [name, handle] of folder.entries()) {
    how.signal.throwIfAborted();
    if (isOwn(name)) continue;
    const at = below(path, name);
    if (isName(name)) await look(tree, handle, at, how);
    else tree.skipped.set(at, 'name');
  }
}

async function look(
  { found, skipped }: Tree<Local>,
  handle: FileSystemFileHandle | FileSystemDirectoryHandle,
  path: string,
  how: ScanOptions,
): Promise<void> {
  const more = { digest: null, compared: null, readMs: how.now() };
  try {
    if (handle.kind === 'file') {
      found.set(path, { kind: 'file', ...statOf(await handle.getFile()), ...more });
      return;
    }
    found.set(path, { kind: 'folder', size: 0, modifiedMs: 0, ...more });
    const inside: Tree<Local> = { found: new Map(), skipped: new Map() };
    await scanInto(inside, handle, path, how);
    for (const [one, local] of inside.found) found.set(one, local);
    for (const [one, reason] of inside.skipped) skipped.set(one, reason);
  } catch (error) {
    const isLost = error instanceof DOMException && error.name === 'NotAllowedError';
    if (how.signal.aborted || isLost) throw error;
    // Nothing in it is reported absent: it was not listed whole.
    found.delete(path);
    skipped.set(path, 'unreadable');
  }
}
