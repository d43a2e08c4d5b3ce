// A folder that is kept in sync while the page is open: when it is looked at, and how that goes.

import { listen, type SynclineClient } from '@syncline/api';
import { unlocked } from '../sealed/unlocked.svelte.ts';
import { wait } from '../transfers/wait.ts';
import { digest } from '../transfers/digest.ts';
import { DirectoryDisk } from './disk.ts';
import { Engine, type Outlook } from './engine.ts';
import { isPassing, stateAfter } from './failures.ts';
import { askPermission, isPermitted, observe } from './handles.ts';
import { labelOf } from './names.ts';
import { aborted, whenOpen } from './opened.svelte.ts';
import { emptyReport, sumOf, type Report } from './report.ts';
import { Restless } from './restless.ts';
import { serverOf } from './server.ts';
import type { State } from './states.ts';
import { StoredRows, updatePair, type Pair } from './store.ts';
import { tellOthers } from './tabs.ts';

/** How often the folder is looked at, at least; less often where that takes long. */
const LOOK_MS = 4_000;
/** How often the server is asked where its log ends: events are hints, and one may be left out. */
const HEAD_MS = 60_000;
const RETRY_MIN_MS = 2_000;
const RETRY_MAX_MS = 60_000;
/** What changes all the time is looked at again later. */
const STALE_MAX = 3;

export class FolderSync {
  state = $state<State>('paused');
  pair = $state.raw<Pair>() as Pair;
  /** What the last round said. */
  report = $state.raw<Report>(emptyReport());
  /** What was done since the page was opened. */
  total = $state.raw<Report>(emptyReport());
  /** What a first round would do. */
  outlook = $state.raw<Outlook>();
  failure = $state.raw<unknown>();

  readonly #engine: Engine;
  readonly #restless = new Restless(STALE_MAX);
  #stop = new AbortController();
  #answer: { confirmed: number; isRestoring: boolean } | null = null;
  #seq = 0;
  #hasNews = false;
  /** Whether somebody has said that the first round may begin. */
  #hasBegun = false;
  /** Whether somebody wants the round that is going on, or the next one. */
  #isWanted = false;
  #ring: () => void = () => undefined;

  constructor(
    readonly client: SynclineClient,
    pair: Pair,
    readonly handle: FileSystemDirectoryHandle,
  ) {
    this.pair = pair;
    this.#engine = new Engine({
      disk: new DirectoryDisk(handle),
      server: serverOf(client, pair, () => this.#isWanted),
      rows: new StoredRows(pair.id),
      digest,
      now: Date.now,
      label: labelOf(pair.device),
    });
  }

  start(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    void this.#keepWhileOpen(signal).catch((error: unknown) => {
      if (signal.aborted) return;
      this.failure = error;
      this.state = 'failed';
    });
  }

  stop(): void {
    this.#stop.abort();
    this.#isWanted = false;
    this.state = 'paused';
  }

  async pause(isPaused: boolean): Promise<void> {
    this.#set(isPaused);
    // A browser that has no room left for that forgets it with the page.
    await this.#save({ isPaused }).catch((error: unknown) => (this.failure = error));
    tellOthers({ id: this.pair.id, isPaused });
  }

  /** Does what was said in another tab, which has saved it. */
  heed(isPaused: boolean): void {
    if (isPaused === this.pair.isPaused) return;
    this.pair = { ...this.pair, isPaused };
    this.#set(isPaused);
  }

  #set(isPaused: boolean): void {
    this.failure = undefined;
    if (isPaused) this.stop();
    else this.start();
  }

  /** Looks at once, also where it has given up. */
  look(): void {
    this.#isWanted = true;
    if (['working', 'watching', 'offline'].includes(this.state)) this.#wake();
    else this.start();
  }

  /** Asks the browser for leave, right after a click. */
  async allow(): Promise<void> {
    if (await askPermission(this.handle)) this.start();
  }

  /** Begins after the outlook, or says that what is absent may go. */
  confirm(): void {
    this.#reply({ confirmed: this.report.asks?.absent ?? 0, isRestoring: false });
  }

  /** What is absent comes back from the server. */
  bringBack(): void {
    this.#reply({ confirmed: 0, isRestoring: true });
  }

  #reply(answer: { confirmed: number; isRestoring: boolean }): void {
    this.#answer = answer;
    this.#isWanted = true;
    this.#ring();
  }

  #wake(): void {
    this.#hasNews = true;
    this.#ring();
  }

  async #save(change: Partial<Pair>): Promise<void> {
    this.pair = { ...this.pair, ...change };
    if (!(await updatePair(this.pair.id, change))) this.stop();
  }

  /** While an encrypted workspace is locked neither side is touched; another tab may keep the folder then. */
  async #keepWhileOpen(signal: AbortSignal): Promise<void> {
    const { workspace, isSealed } = this.pair;
    if (!isSealed) return this.#keep(signal);
    while (!signal.aborted) {
      if (!unlocked.open.has(workspace)) this.state = 'locked';
      const whileOpen = await whenOpen(workspace, signal);
      try {
        await this.#keep(whileOpen);
      } catch (error) {
        if (!whileOpen.aborted) [this.failure, this.state] = [error, 'failed'];
      }
      // What has failed for good is tried again when it is unlocked the next time.
      await aborted(whileOpen);
      this.#engine.forgetRemote();
    }
  }

  /** One tab keeps a folder; another one waits until it is closed. */
  async #keep(signal: AbortSignal): Promise<void> {
    const name = `syncline folder sync ${this.pair.id}`;
    const isFree = await navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
      if (!lock) return false;
      await this.#keepAlone(signal);
      return true;
    });
    if (isFree || signal.aborted) return;
    this.state = 'elsewhere';
    await navigator.locks.request(name, { signal }, () => this.#keepAlone(signal));
  }

  async #keepAlone(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const isAllowed = await isPermitted(this.handle);
    signal.throwIfAborted();
    if (!isAllowed) {
      this.state = 'permission';
      return;
    }
    // Another tab may have kept it meanwhile: what was listed here is older than the merge base.
    this.#engine.forgetRemote();
    // What an earlier page had on its way; a folder that is gone says so in the round.
    await new DirectoryDisk(this.handle).clear().catch(() => undefined);
    const hear = () => this.#wake();
    const unobserve = await observe(this.handle, hear);
    addEventListener('focus', hear);
    try {
      void this.#listen(signal);
      if (this.pair.lastSyncMs === null && !this.#hasBegun) await this.#first(signal);
      await this.#rounds(signal);
    } finally {
      unobserve();
      removeEventListener('focus', hear);
    }
  }

  /** Says what would happen, and waits for somebody to want it. */
  async #first(signal: AbortSignal): Promise<void> {
    this.state = 'working';
    this.outlook = await this.#engine.outlook(signal);
    signal.throwIfAborted();
    this.state = 'ready';
    this.#answer = null;
    while (this.#answer === null && !signal.aborted) await this.#sleep(HEAD_MS, signal);
    this.#hasBegun = this.#answer !== null;
    this.#answer = null;
    this.outlook = undefined;
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const onEvent = ({ seq }: { seq: number }) => this.#hear(seq);
    // A server that comes back may have been set back, and count up to the same number.
    const onState = (isConnected: boolean) => isConnected || this.#engine.forgetRemote();
    await listen(this.client, this.pair.workspace, { onEvent, onState }, signal);
    if (!signal.aborted) this.#wake();
  }

  #hear(seq: number): void {
    if (seq === this.#seq) return;
    this.#seq = seq;
    this.#engine.forgetRemote();
    this.#wake();
  }

  async #rounds(signal: AbortSignal): Promise<void> {
    let [retryMs, stale, askedMs] = [RETRY_MIN_MS, 0, Date.now()];
    while (!signal.aborted) {
      const began = Date.now();
      let pauseMs: number;
      try {
        await this.#round(signal);
        retryMs = RETRY_MIN_MS;
        const took = Date.now() - began;
        pauseMs = Math.max(LOOK_MS, 5 * took);
        stale = this.report.isStale ? stale + 1 : 0;
        if (this.report.isStale && stale <= STALE_MAX) pauseMs = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.failure = error;
        this.state = stateAfter(error);
        if (!isPassing(error)) {
          this.#isWanted = false;
          return;
        }
        this.#engine.forgetRemote();
        pauseMs = retryMs;
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
      if (this.state === 'asking') pauseMs = RETRY_MAX_MS;
      if (pauseMs > 0) await this.#sleep(pauseMs, signal);
      if (Date.now() - askedMs < HEAD_MS || signal.aborted) continue;
      askedMs = Date.now();
      const head = await this.client.workspace(this.pair.workspace).catch(() => null);
      if (head) this.#hear(head.head_seq);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const answer = this.#answer;
    this.#answer = null;
    if (answer?.isRestoring) await this.#engine.forgetAbsent(signal);
    // A question stays until it is answered, or what was absent is there again.
    if (answer || !['watching', 'asking'].includes(this.state)) this.state = 'working';
    const onProgress = (report: Report) => {
      if (signal.aborted) return;
      this.state = 'working';
      this.report = { ...report };
    };
    const confirmed = answer?.confirmed ?? 0;
    const report = await this.#engine.round({ signal, confirmed, onProgress });
    // A round that breaks off, or has not done all, goes on in the next one: so does what somebody wants.
    if (!report.isStale) this.#isWanted = false;
    // Somebody may have paused it while the last step went on.
    signal.throwIfAborted();
    report.problems.push(...this.#restless.note(report.changed));
    this.report = report;
    this.total = sumOf(this.total, report);
    this.failure = undefined;
    this.state = report.asks ? 'asking' : 'watching';
    if (report.asks) return;
    // Not all was in sync where something changed meanwhile; but somebody has wanted it to begin. Each round asks whether it is kept at all.
    const isInSync = !report.isStale || this.pair.lastSyncMs === null;
    await this.#save(isInSync ? { lastSyncMs: Date.now() } : {});
  }

  /** Waits, or less where something has happened. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#hasNews) {
      this.#hasNews = false;
      return;
    }
    const awake = new AbortController();
    this.#ring = () => awake.abort();
    await wait(ms, AbortSignal.any([signal, awake.signal]));
    this.#hasNews = false;
  }
}
