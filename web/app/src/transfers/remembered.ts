// What was on its way to the server, kept in the browser, so that it goes on after the page was loaded anew. The bytes are not kept: a file
// is found again by its handle where the browser has those, else by somebody who picks it again.

import type { Condition, NodePath } from '@syncline/api';
import type { Chosen } from './dropped.ts';
import { Memory, newKey, type Kept } from './memory.ts';
import type { BegunDelta } from './upload.ts';

export interface Remembered extends Kept {
  workspace: string;
  path: NodePath;
  folders: NodePath[];
  name: string;
  size: number;
  modifiedMs: number;
  condition: Condition;
  /** The upload that the server knows. */
  upload: string | null;
  /** What the file was when that began; nothing while it is not known. */
  digest?: string | null;
  /** The same of a delta. */
  delta: BegunDelta | null;
  isPaused: boolean;
  handle: FileSystemFileHandle | null;
  /** What somebody has chosen: the file, or a folder that it is in. The browser asks about this. */
  root: FileSystemHandle | null;
}

/** What is to be remembered; to which page it belongs is known here. */
export type Unsent = Omit<Remembered, 'page'>;

/** What is to be remembered of a file that somebody has chosen to go to a path, by way of these folders. */
export function unsentOf(
  account: string,
  { workspace, path, folders }: Pick<Unsent, 'workspace' | 'path' | 'folders'>,
  file: File,
  { handle = null, root = null }: Pick<Chosen, 'handle' | 'root'>,
): Unsent {
  return {
    ...{ key: newKey(), account, workspace, path, folders, handle, root },
    ...{ upload: null, digest: null, delta: null, isPaused: false },
    condition: { ifAbsent: true },
    ...{ name: file.name, size: file.size, modifiedMs: file.lastModified },
  };
}

export const remembered = new Memory<Remembered>('syncline-transfers');
