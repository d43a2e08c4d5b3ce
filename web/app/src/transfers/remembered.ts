// What was on its way to the server, kept in the browser, so that it goes on after the page was loaded anew. The bytes are not kept: a file
// is found again by its handle where the browser has those, else by somebody who picks it again.

import type { Condition, NodePath } from '@syncline/api';
import { Memory, type Kept } from './memory.ts';
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
  /** The same of a delta. */
  delta: BegunDelta | null;
  isPaused: boolean;
  handle: FileSystemFileHandle | null;
  /** What somebody has chosen: the file, or a folder that it is in. The browser asks about this. */
  root: FileSystemHandle | null;
}

/** What is to be remembered; to which page it belongs is known here. */
export type Unsent = Omit<Remembered, 'page'>;

export const remembered = new Memory<Remembered>('syncline-transfers');
