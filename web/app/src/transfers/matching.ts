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
 * Pairs what was picked with what is missing: only where neither could be another one, since what has come of one file is never to be gone on with
 * by another, however alike they look. A file that is picked by itself says nothing of its folder, and neither did one that was picked so before.
 */
export function match<Record extends Wanted>(
  list: readonly Record[],
  chosen: readonly Chosen[],
  wasInFolder: (record: Record) => boolean,
): Found<Record>[] {
  const fitting: Found<Record>[] = [];
  for (const { file, folders } of chosen) {
    if (!file) continue;
    const fits = (one: Record) => isSame(one, file) && (!wasInFolder(one) || isAt(one, folders));
    fitting.push(...list.filter(fits).map((record) => ({ record, file })));
  }
  const times = new Map<unknown, number>();
  for (const key of fitting.flatMap(({ record, file }) => [record, file])) {
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  return fitting.filter(({ record, file }) => times.get(record) === 1 && times.get(file) === 1);
}
