// Files and folders as browsers give them: how they fail, and how they are moved.

import { SERVICE } from './names.ts';
import type { Stat } from './plan.ts';

/** Not in all browsers, and not for all files where it is. */
interface Movable {
  move?(folder: FileSystemDirectoryHandle, name: string): Promise<void>;
}

export function isMissing(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'NotFoundError';
}

export function isMismatch(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TypeMismatchError';
}

export function statOf(file: File): Stat {
  return { size: file.size, modifiedMs: file.lastModified };
}

/** Moves a file; says whether the browser could. */
export async function move(
  file: FileSystemFileHandle,
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<boolean> {
  const movable = file as Movable;
  if (!movable.move) return false;
  try {
    await movable.move(folder, name);
    return true;
  } catch (error) {
    // A file that is not there, or that may not be written, cannot be copied either.
    if (isMissing(error)) throw error;
    return false;
  }
}

/** Whether a folder is kept by a program of Syncline already: two would not know of each other. */
export async function isKeptByDevice(root: FileSystemDirectoryHandle): Promise<boolean> {
  try {
    await root.getDirectoryHandle(SERVICE);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
