// Which of the files that somebody picks is which of those that were being sent.

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

/** Pairs what was picked with what is missing: of several files that look the same the one whose folders fit best. */
export function match<Record extends Wanted>(
  list: readonly Record[],
  chosen: readonly Chosen[],
): Found<Record>[] {
  const left = new Set(list);
  const found: Found<Record>[] = [];
  for (const { file, folders } of chosen) {
    if (!file) continue;
    const place = [...folders, file.name].map(encodeURIComponent).join('/');
    const fitting = [...left].filter((record) => isSame(record, file));
    const record = fitting.find(({ path }) => `/${path}`.endsWith(`/${place}`)) ?? fitting[0];
    if (!record) continue;
    left.delete(record);
    found.push({ record, file });
  }
  return found;
}
