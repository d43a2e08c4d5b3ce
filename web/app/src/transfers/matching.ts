// Which of the files that somebody picks is which of those that were being sent.

import { encodeName, parentOf } from '@syncline/api';
import type { Chosen } from './dropped.ts';
import type { Unsent } from './remembered.ts';

/** By what a file is known again. */
export type Wanted = Pick<Unsent, 'name' | 'size' | 'modifiedMs' | 'path'>;

/** A file that was found again. */
export interface Found<Record extends Wanted = Unsent> {
  record: Record;
  file: File;
}

/** Whether a file is the one that was being sent, as far as can be seen without reading it. */
export function isSame(
  record: Wanted,
  { name, size, lastModified }: Pick<File, 'name' | 'size' | 'lastModified'>,
): boolean {
  return record.name === name && record.size === size && record.modifiedMs === lastModified;
}

/** Whether what was picked lies where the file was that was being sent: its folders are the last ones of that. The name may be another one there. */
const isAt = ({ path }: Wanted, folders: readonly string[]) =>
  `/${parentOf(path)}`.endsWith(folders.map((name) => `/${encodeName(name)}`).join(''));

/**
 * Pairs what was picked with what is missing. A file that was picked by itself says nothing of its folder; one that lies in another folder is another
 * one, however alike they look: what has come of one is never gone on with by another.
 */
export function match<Record extends Wanted>(
  list: readonly Record[],
  chosen: readonly Chosen[],
): Found<Record>[] {
  const left = new Set(list);
  const found: Found<Record>[] = [];
  for (const { file, folders } of chosen) {
    if (!file) continue;
    const [record, ...others] = [...left].filter((one) => isSame(one, file) && isAt(one, folders));
    if (!record || others.length > 0) continue;
    left.delete(record);
    found.push({ record, file });
  }
  return found;
}
