// What happened in a workspace as the page shows it, wherever it comes from.

import type { Activity, ActivityChange, FileAnswer, Node } from '@syncline/api';
import type { Page } from '../shell/paged-list.svelte.ts';
import type { VersionsOf } from '../versions/versions.ts';

/** Where what happened in a workspace is told, and what was changed is found. */
export interface ActivityOf {
  /** Where the files of the workspace are. */
  files: string;
  /** Where it is shown what was deleted. */
  trash: string;
  /** Some of it, the newest first. */
  page(cursor: string | undefined): Promise<Page<Activity>>;
  /** What was changed as it is now; nothing where it is gone. */
  find(change: ActivityChange): Promise<Node | null>;
  /** Where a folder is shown, or the one in which something lies. */
  addressOf(found: Node): string;
  read(file: Node, signal: AbortSignal): Promise<FileAnswer>;
  save(file: Node): Promise<void>;
  versions(file: Node): VersionsOf;
}
