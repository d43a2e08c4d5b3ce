// What was there before in a sealed workspace, and what happened: the worker knows in which entries of the log that stands, and these are
// fetched again and compared with what was folded.

import type { SealedActivity, SealedVersion } from './protocol.ts';
import type { SealedCall } from './sealed-history.ts';
import { coreError } from './sealed-opening.ts';
import type { SealedSource } from './sealed.ts';

/** How many entries are looked at for one answer about what happened. */
const ENTRIES_AT_ONCE = 50;

/** How many versions are told at once: each stands in an entry that is fetched. */
const VERSIONS_AT_ONCE = 20;

export class SealedPast {
  readonly #source: SealedSource;
  readonly #call: SealedCall;

  constructor(source: SealedSource, call: SealedCall) {
    this.#source = source;
    this.#call = call;
  }

  /** What the last entries before one did, the newest first. There may be nothing in it though there is more. */
  async activity(
    before: number,
    signal?: AbortSignal,
  ): Promise<{ activity: SealedActivity[]; next: number | null }> {
    const first = Math.max(1, before - ENTRIES_AT_ONCE);
    const activity: SealedActivity[] = [];
    for (let since = first - 1; since + 1 < before;) {
      const frame = await this.#source.entries(since, false, signal);
      const told = await this.#call('sealedActivity', { frame, since, before });
      const last = told.last ?? 0;
      // Whoever gives nothing is not asked for ever.
      if (last <= since) throw coreError('missing', `entry ${since + 1} is gone`);
      activity.push(...told.activity);
      since = last;
    }
    return { activity: activity.reverse(), next: first > 1 ? first : null };
  }

  /** The version of a node that an entry has brought. */
  async version(node: string, seq: number, signal?: AbortSignal): Promise<SealedVersion> {
    const frame = await this.#source.entries(seq - 1, true, signal);
    return this.#call('sealedVersion', { node, entry: { seq, frame } });
  }

  /** The newest version of a node. */
  async lastVersion(node: string): Promise<SealedVersion | null> {
    const [seq] = await this.#call('sealedVersionEntries', { node, before: null, limit: 1 });
    return seq === undefined ? null : this.version(node, seq);
  }

  /** Some versions of a file, the newest first, behind the `next` of an answer before: their entries are fetched again. */
  async versions(
    node: string,
    before: number | null,
    signal?: AbortSignal,
  ): Promise<{ versions: SealedVersion[]; next: number | null }> {
    const limit = VERSIONS_AT_ONCE + 1;
    const entries = await this.#call('sealedVersionEntries', { node, before, limit });
    const one = (seq: number) => this.version(node, seq, signal);
    const told = entries.slice(0, VERSIONS_AT_ONCE);
    const next = entries.length > told.length ? (told.at(-1) ?? null) : null;
    return { versions: await Promise.all(told.map(one)), next };
  }
}
