// The conflicts of a workspace as the page shows them, wherever they come from.

import type { Conflict, ConflictPage, FileAnswer, Node, Version } from '@syncline/api';
import type { Keep } from './deciding.ts';

/** Who made a version. */
export type Maker = Pick<Version, 'time' | 'device_id' | 'device_name'>;

/** A decision: what stands is called so, and it can be taken back. */
export interface Decided {
  name: string;
  undo: () => Promise<void>;
}

/** Where the conflicts of a workspace come from, and what becomes of one. */
export interface ConflictsOf {
  /** Where they are shown. */
  address: string;
  /** Some of them, the newest first, and how many there are of all. */
  page(cursor: string | undefined, limit: number): Promise<ConflictPage>;
  maker(side: Node): Promise<Maker | null>;
  read(side: Node, signal: AbortSignal): Promise<FileAnswer>;
  save(side: Node): Promise<void>;
  /** Decides what somebody has seen; `name` is what the copy is called from then on where both are kept. */
  decide(conflict: Conflict, keep: Keep, name?: string): Promise<Decided>;
}
