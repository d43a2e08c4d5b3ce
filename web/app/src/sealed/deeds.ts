// What can be done in a folder of an encrypted workspace, and to what is selected in it.

import type { Node } from '@syncline/api';
import type { Relocation } from '../files/relocating.ts';
import type { Deed } from '../shell/toolbar.ts';
import type { Words } from '../words/en.ts';

export interface Doing {
  upload(): void;
  uploadFolder(): void;
  create(): void;
  /** Keeps the folder in sync with one of this computer. */
  sync(): void;
  download(files: Node[]): void;
  /** Downloads a folder with everything in it; the one that is open where there is none. */
  archive(folder: Node | null): void;
  rename(node: Node): void;
  relocate(what: Relocation, nodes: Node[]): void;
  versions(file: Node): void;
  delete(nodes: Node[]): void;
  /** Shows what was deleted. */
  trash(): void;
  /** Shows what happened. */
  activity(): void;
  /** Shows what waits for a decision. */
  conflicts(): void;
  /** Says what the server can see. */
  show(): void;
  lock(): void;
  /** Goes to the folder above. */
  leave(): void;
  undo(): void;
  /** Shows what keys are for. */
  help(): void;
  /** Lets a device in, in a workspace of one's own. */
  letIn: (() => void) | null;
}

/** The buttons above the list. */
export function deedsOf(
  selected: Node[],
  doing: Doing,
  mayWrite: boolean,
  { activity, files: say, sealed, trash }: Words,
): Deed[] {
  const { letIn } = doing;
  // What is brief is only heard, so that the buttons stay in one line.
  const host = { icon: 'device', label: sealed.letIn, isBrief: true } as const;
  const always: Deed[] = [
    ...(letIn === null ? [] : [{ ...host, run: letIn }]),
    { icon: 'eye', label: sealed.shown, run: () => doing.show(), isBrief: true },
    { icon: 'lock', label: sealed.lock, run: () => doing.lock(), isBrief: true },
  ];
  if (selected.length === 0) {
    always.unshift(
      { icon: 'activity', label: activity.title, run: () => doing.activity(), isBrief: true },
      { icon: 'trash', label: trash.title, run: () => doing.trash() },
    );
    const archive = { icon: 'archive', label: say.archive, isBrief: true } as const;
    always.unshift({ ...archive, run: () => doing.archive(null) });
    if (!mayWrite) return always;
    return [
      { icon: 'upload', label: say.upload, run: () => doing.upload(), isMain: true },
      { icon: 'upload-folder', label: say.uploadFolder, run: () => doing.uploadFolder() },
      { icon: 'new-folder', label: say.newFolder, run: () => doing.create() },
      { icon: 'sync', label: say.sync, run: () => doing.sync() },
      ...always,
    ];
  }
  const found: Deed[] = [];
  const files = selected.filter(({ kind }) => kind === 'file');
  if (files.length > 0) {
    const run = () => doing.download(files);
    found.push({ icon: 'download', label: say.download, run, isMain: true });
  }
  const [single] = selected.length === 1 ? selected : [];
  if (single?.kind === 'folder') {
    const run = () => doing.archive(single);
    found.push({ icon: 'archive', label: say.archive, run, isMain: true });
  }
  if (single?.kind === 'file') {
    found.push({ icon: 'history', label: say.versions, run: () => doing.versions(single) });
  }
  if (!mayWrite) return [...found, ...always];
  if (single) found.push({ icon: 'rename', label: say.rename, run: () => doing.rename(single) });
  found.push({ icon: 'move', label: say.move, run: () => doing.relocate('move', selected) });
  found.push({ icon: 'copy', label: say.copy, run: () => doing.relocate('copy', selected) });
  found.push({ icon: 'trash', label: say.delete, run: () => doing.delete(selected) });
  return [...found, ...always];
}

/** What a key is for. */
export function shortcutOf(
  event: KeyboardEvent,
  selected: Node[],
  doing: Doing,
  mayWrite: boolean,
): (() => void) | undefined {
  const [single] = selected.length === 1 ? selected : [];
  if (event.altKey) {
    if (event.key === 'ArrowUp') return () => doing.leave();
    if (event.code === 'KeyT') return () => doing.trash();
    if (event.code === 'KeyA') return () => doing.activity();
    if (event.code === 'KeyK') return () => doing.conflicts();
    if (event.code === 'KeyI' && single?.kind === 'file') return () => doing.versions(single);
    if (!mayWrite) return undefined;
    if (event.code === 'KeyN') return () => doing.create();
    if (event.code === 'KeyU') return () => doing.upload();
    if (event.code === 'KeyM') return () => doing.relocate('move', selected);
    if (event.code === 'KeyC') return () => doing.relocate('copy', selected);
    return undefined;
  }
  const isInList = event.target instanceof Element && event.target.closest('[role="grid"]');
  if (event.key === '?' && isInList) return () => doing.help();
  if ((event.ctrlKey || event.metaKey) && event.key === 'z' && mayWrite) return () => doing.undo();
  return undefined;
}
