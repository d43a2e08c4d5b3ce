// What can be done to what is selected, and the keys for it.

import type { Node } from '@syncline/api';
import { previewOf } from '../preview/kind.ts';
import type { Deed } from '../shell/toolbar.ts';
import type { Words } from '../words/en.ts';
import type { Relocation } from './relocating.ts';

/** What the list is asked to do. */
export interface Doing {
  upload(): void;
  uploadFolder(): void;
  create(): void;
  open(node: Node): void;
  preview(node: Node): void;
  download(nodes: Node[]): void;
  /** Downloads a folder with everything in it; the one that is open where there is none. */
  archive(folder: Node | null): void;
  rename(node: Node): void;
  /** Moves or copies nodes into another folder. */
  relocate(what: Relocation, nodes: Node[]): void;
  versions(node: Node): void;
  /** Shares a node, or all of the workspace. */
  share(node: Node | null): void;
  /** Keeps the folder in sync with one of this computer. */
  sync(): void;
  /** Shows what was deleted. */
  trash(): void;
  /** Shows what happened. */
  activity(): void;
  /** Shows what all of the workspace takes. */
  storage(): void;
  /** Shows what waits for a decision. */
  conflicts(): void;
  delete(nodes: Node[]): void;
  clear(): void;
  /** Goes to the folder above. */
  leave(): void;
  undo(): void;
  help(): void;
}

export interface Situation {
  selected: Node[];
  mayEdit: boolean;
  doing: Doing;
  words: Words['files'];
  /** What the trash is called, and what happened. */
  labels: { trash: string; activity: string };
  /** Whether the root of the workspace is shown. */
  isRoot: boolean;
}

/** The buttons above the list. */
export function deedsOf(situation: Situation): Deed[] {
  return situation.selected.length === 0 ? forFolder(situation) : forSelection(situation);
}

function forFolder({ mayEdit, doing, words, isRoot, labels }: Situation): Deed[] {
  const share: Deed = { icon: 'share', label: words.share, run: () => doing.share(null) };
  const trash: Deed = { icon: 'trash', label: labels.trash, run: () => doing.trash() };
  const activity: Deed = { icon: 'activity', label: labels.activity, run: () => doing.activity() };
  const storage: Deed = {
    icon: 'chart',
    label: words.storage,
    run: () => doing.storage(),
    isBrief: true,
  };
  const archive: Deed = { icon: 'archive', label: words.archive, run: () => doing.archive(null) };
  if (!mayEdit)
    return isRoot ? [archive, share, activity, storage, trash] : [archive, activity, trash];
  return [
    { icon: 'upload', label: words.upload, run: () => doing.upload(), isMain: true },
    { icon: 'upload-folder', label: words.uploadFolder, run: () => doing.uploadFolder() },
    { icon: 'new-folder', label: words.newFolder, run: () => doing.create() },
    { icon: 'sync', label: words.sync, run: () => doing.sync() },
    archive,
    share,
    activity,
    ...(isRoot ? [storage] : []),
    trash,
  ];
}

function forSelection({ selected, mayEdit, doing, words }: Situation): Deed[] {
  const single = selected.length === 1 ? selected[0] : undefined;
  const found: Deed[] = [];
  const add = (icon: Deed['icon'], label: string, run: () => void, isMain = false) =>
    found.push({ icon, label, run, isMain });
  if (single?.kind === 'folder') add('folder', words.open, () => doing.open(single), true);
  const isShown = single?.kind === 'file' && previewOf(single.name, single.size) !== null;
  if (isShown) add('eye', words.preview, () => doing.preview(single), true);
  if (selected.every((node) => node.kind === 'file')) {
    add('download', words.download, () => doing.download(selected), !isShown);
  }
  if (single?.kind === 'folder' && !single.mounted) {
    add('archive', words.archive, () => doing.archive(single));
  }
  if (single && mayEdit) {
    if (isShareable(single)) add('share', words.share, () => doing.share(single));
    add('rename', words.rename, () => doing.rename(single));
  }
  if (mayEdit) {
    add('move', words.move, () => doing.relocate('move', selected));
    add('copy', words.copy, () => doing.relocate('copy', selected));
  }
  if (single?.kind === 'file') add('history', words.versions, () => doing.versions(single));
  if (mayEdit) add('trash', words.delete, () => doing.delete(selected));
  add('close', words.clear, () => doing.clear());
  return found;
}

/** Whether it can be shared here: a folder that is a workspace of its own is shared there. */
function isShareable({ kind, mounted }: Node): boolean {
  return kind !== 'link' && !mounted;
}

/** What a key is for. */
export function shortcutOf(event: KeyboardEvent, situation: Situation): (() => void) | undefined {
  const { doing } = situation;
  const control = event.ctrlKey || event.metaKey;
  if (event.altKey && !control && !event.shiftKey) return withAlt(event, situation);
  // One letter alone is a shortcut in the list only, where nobody speaks or types texts.
  const isInList = event.target instanceof Element && event.target.closest('[role="grid"]');
  if (event.key === '?' && isInList) return () => doing.help();
  if (control && event.key === 'z') return () => doing.undo();
  return undefined;
}

function withAlt(
  event: KeyboardEvent,
  { selected, mayEdit, doing, isRoot }: Situation,
): (() => void) | undefined {
  const single = selected.length === 1 ? selected[0] : undefined;
  if (event.key === 'ArrowUp') return () => doing.leave();
  if (event.code === 'KeyT') return () => doing.trash();
  if (event.code === 'KeyA') return () => doing.activity();
  if (event.code === 'KeyK') return () => doing.conflicts();
  if (event.code === 'KeyI' && single?.kind === 'file') return () => doing.versions(single);
  if (event.code === 'KeyS' && selected.length === 0 && (mayEdit || isRoot)) {
    return () => doing.share(null);
  }
  if (!mayEdit) return undefined;
  if (event.code === 'KeyS' && single && isShareable(single)) return () => doing.share(single);
  if (event.code === 'KeyM' && selected.length > 0) return () => doing.relocate('move', selected);
  if (event.code === 'KeyC' && selected.length > 0) return () => doing.relocate('copy', selected);
  if (event.code === 'KeyN') return () => doing.create();
  if (event.code === 'KeyU') return () => doing.upload();
  return undefined;
}
