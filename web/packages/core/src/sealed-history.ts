// The log of a sealed workspace as it is read: folded in the worker, and compared with what was read here before.

import { CoreError } from './error.ts';
import type { CallName, Calls } from './protocol.ts';
import { coreError } from './sealed-opening.ts';
import type { SealedSource, SeenHead } from './sealed.ts';

/** Calls the worker in which the workspace is open. */
export type SealedCall = <Name extends CallName>(
  name: Name,
  ask: Calls[Name]['ask'],
) => Promise<Calls[Name]['answer']>;

/** What tells of names and contents, as far as the log was folded. */
const TELLING: ReadonlySet<CallName> = new Set<CallName>([
  'sealedList',
  'sealedListAll',
  'sealedWay',
  'sealedSearch',
  'sealedFind',
  'sealedDeleted',
  'sealedConflicts',
  'sealedActivity',
  'sealedVersion',
  'sealedVersionEntries',
  'sealedBegin',
  'sealedArchive',
  'sealedCompare',
]);

export class SealedHistory {
  readonly #source: SealedSource;
  readonly #seen: SeenHead | undefined;
  readonly #call: SealedCall;
  #catching: Promise<boolean> | undefined;
  /** Why the history that was folded is not the one that was read here before. */
  #refusal: CoreError | undefined;
  /** The number of the last entry that was folded. */
  head = 0;
  /** Whether what is written here counts, as far as the log was read. */
  mayWrite = false;

  constructor(source: SealedSource, seen: SeenHead | undefined, call: SealedCall) {
    this.#source = source;
    this.#seen = seen;
    this.#call = call;
  }

  /** Throws where a call would tell of a history that was refused when it was compared last: nobody is shown what was folded of it. */
  check(name: CallName): void {
    if (this.#refusal && TELLING.has(name)) throw this.#refusal;
  }

  /** Reads what is new, and checks it; says whether there was anything. Who asks while it is read waits for the same. */
  catchUp(onProgress?: (head: number) => void): Promise<boolean> {
    this.#catching ??= this.#readOn(onProgress).finally(() => (this.#catching = undefined));
    return this.#catching;
  }

  /** Reads all that stands in the log now: what is being read may have been asked for before. */
  async readAll(): Promise<void> {
    await this.#catching;
    await this.catchUp();
  }

  async #readOn(onProgress: ((head: number) => void) | undefined): Promise<boolean> {
    const before = this.head;
    for (;;) {
      // Another tab may read on while this one waits: that is no shorter history here.
      const seen = this.#seen?.get() ?? { seq: 0, hash: null };
      const { count, head, mayWrite } = await this.#foldNext();
      this.head = head;
      this.mayWrite = mayWrite;
      if (count === 0) {
        await this.#compareWith(seen);
        return head !== before;
      }
      onProgress?.(head);
    }
  }

  /** Folds what comes next; where newer keys are needed, and the owner has sealed them to this account, with these. */
  async #foldNext(): Promise<Calls['sealedFold']['answer']> {
    const frame = await this.#source.entries(this.head, false);
    try {
      return await this.#call('sealedFold', { frame });
    } catch (error) {
      // What came before the entry that was refused is folded.
      this.head = await this.#call('sealedHead', null).catch(() => this.head);
      const isOfKeys = error instanceof CoreError && error.code === 'unknown_epoch';
      const envelope = isOfKeys ? await this.#source.membership?.envelope() : null;
      if (!envelope) throw error;
      const { isNewer, generation } = await this.#call('sealedRenew', { envelope });
      if (!isNewer) throw error;
      this.#seen?.setKeys(generation);
      return this.#foldNext();
    }
  }

  /** Refuses a history that is not the one that was read here before, or that ends before it: the server keeps something back. */
  async #compareWith(seen: ReturnType<SeenHead['get']>): Promise<void> {
    const hashOf = (number: number) => this.#call('sealedHash', { seq: number });
    const { seq, hash } = seen;
    this.#refusal = this.#refusalOf(seen, seq <= this.head ? await hashOf(seq) : null);
    if (this.#refusal) throw this.#refusal;
    if (this.head === seq && hash !== null) return;
    const now = await hashOf(this.head);
    // Another tab may have read on meanwhile.
    const isNews = this.head >= (this.#seen?.get().seq ?? 0);
    if (now !== null && isNews) this.#seen?.set(this.head, now);
  }

  #refusalOf(
    { seq, hash }: ReturnType<SeenHead['get']>,
    found: string | null,
  ): CoreError | undefined {
    if (this.head < seq) {
      const message = `the history ends at entry ${this.head}, and went to ${seq} before`;
      return new CoreError({ code: 'older_history', message, isRetryable: true });
    }
    if (hash === null || found === hash) return undefined;
    return coreError('other_history', `entry ${seq} is not the one that was read before`);
  }
}
