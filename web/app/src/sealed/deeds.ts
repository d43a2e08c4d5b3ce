// What can be done in a folder of an encrypted workspace, and to what is selected in it.

import type { Node } from '@syncline/api';
import type { Deed } from '../files/deeds.ts';
import type { Words } from '../words/en.ts';

export interface Doing {
  upload(): void;
  uploadFolder(): void;
  create(): void;
  download(files: Node[]): void;
  rename(node: Node): void;
  delete(nodes: Node[]): void;
  /** Says what the server can see. */
  show(): void;
  lock(): void;
}

/** The buttons above the list. */
export function deedsOf(
  selected: Node[],
  doing: Doing,
  mayWrite: boolean,
  { files: say, sealed }: Words,
): Deed[] {
  const always: Deed[] = [
    { icon: 'eye', label: sealed.shown, run: () => doing.show() },
    { icon: 'lock', label: sealed.lock, run: () => doing.lock() },
  ];
  if (selected.length === 0) {
    if (!mayWrite) return always;
    return [
      { icon: 'upload', label: say.upload, run: () => doing.upload(), isMain: true },
      { icon: 'upload-folder', label: say.uploadFolder, run: () => doing.uploadFolder() },
      { icon: 'new-folder', label: say.newFolder, run: () => doing.create() },
      ...always,
    ];
  }
  const found: Deed[] = [];
  const files = selected.filter(({ kind }) => kind === 'file');
  if (files.length > 0) {
    const run = () => doing.download(files);
    found.push({ icon: 'download', label: say.download, run, isMain: true });
  }
  if (!mayWrite) return [...found, ...always];
  const [single] = selected.length === 1 ? selected : [];
  if (single) found.push({ icon: 'rename', label: say.rename, run: () => doing.rename(single) });
  found.push({ icon: 'trash', label: say.delete, run: () => doing.delete(selected) });
  return [...found, ...always];
}
