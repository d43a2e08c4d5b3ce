// The side that is let in.

import { CoreError } from './error.ts';
import { putBox, waitFor, type PairingBoxes } from './pairing.ts';
import { WorkerPool, type Lease, type PoolWorker } from './pool.ts';
import { coreError, newSeed } from './sealed-opening.ts';
import { SealedWorkspace, type SealedDevice, type SealedSource, type SeenHead } from './sealed.ts';
import { startWorker } from './start.ts';

/** A workspace that the code may be of. */
export interface PairingPlace {
  id: string;
  source: SealedSource;
  boxes: PairingBoxes;
  seen?: SeenHead;
}

interface Found {
  place: PairingPlace;
  /** Under which name the boxes lie. */
  name: string;
  request: Uint8Array<ArrayBuffer>;
  until: number;
}

export interface FindOptions {
  /** As it was typed. */
  code: string;
  /** The workspaces that it is tried on, in this order. */
  places: PairingPlace[];
  device: SealedDevice;
  start?: () => PoolWorker;
}

const isOf = (error: unknown, code: string): boolean =>
  error instanceof CoreError && error.code === code;

/** This browser, which has found who waits for a code, and has asked for nothing yet. */
export class PairingGuest {
  readonly #pool: WorkerPool;
  readonly #lease: Lease;
  #found: Found | undefined;
  #isOver = false;
  /** How the device calls itself that can let this one in. */
  host = '';
  /** What it shows, too, if it is this one that it lets in. */
  digits = '';

  private constructor(pool: WorkerPool, lease: Lease) {
    this.#pool = pool;
    this.#lease = lease;
  }

  /** Says whether a code is whole; throws `pairing_code` where there is a slip in it. */
  static async check(code: string, start?: () => PoolWorker): Promise<void> {
    const pool = new WorkerPool(start ?? startWorker, 1);
    const lease = await pool.take();
    try {
      await lease.call('pairingName', { code });
    } finally {
      await lease.end();
      pool.close();
    }
  }

  /** Finds who waits for a code. Throws `pairing_code`, `pairing_unknown`, and `tampered` for something else than the offer in its place. */
  static async find({ start, ...options }: FindOptions): Promise<PairingGuest> {
    const pool = new WorkerPool(start ?? startWorker, 1);
    const guest = new PairingGuest(pool, await pool.take());
    try {
      await guest.#find(options);
      return guest;
    } catch (error) {
      await guest.leave();
      throw error;
    }
  }

  async #find({ code, places, device }: Omit<FindOptions, 'start'>): Promise<void> {
    const name = await this.#lease.call('pairingName', { code });
    let failure = coreError('pairing_unknown', 'no device waits for this code');
    for (const place of places) {
      const offer = await place.boxes.get(name, 'offer');
      if (offer === null) continue;
      const genesis = await place.source.genesis();
      const who = { device: device.id, deviceName: device.name, seed: newSeed() };
      const ask = { id: place.id, genesis, offer, code, ...who };
      try {
        const { request, seconds, ...said } = await this.#lease.call('pairingJoin', ask);
        Object.assign(this, said);
        this.#found = { place, name, request, until: Date.now() + seconds * 1000 };
        return;
      } catch (error) {
        if (!isOf(error, 'wrong_key')) throw error;
        failure = coreError('tampered', 'what lies there is no offer of this code');
      }
    }
    throw failure;
  }

  /** The workspace that the code is of. */
  get workspace(): string {
    return this.#found?.place.id ?? '';
  }

  /** Asks to be let in, waits for the person at the other device, and opens the workspace. Throws `pairing_used`, `pairing_ended`,
   * `pairing_expired`, and `tampered` for a grant that is not for this browser. */
  async join(signal: AbortSignal): Promise<SealedWorkspace> {
    const found = this.#found;
    if (!found || this.#isOver) throw coreError('pairing_ended', 'nothing was found');
    const { place, name, request, until } = found;
    if (!(await putBox(place.boxes, [name, 'request', request], signal))) {
      this.#found = undefined;
      throw coreError('pairing_used', 'another device has used the code');
    }
    const grant = await waitFor(() => this.#look(found, signal), until, signal);
    const opened = await this.#accept(grant);
    this.#isOver = true;
    // The other device waits for this; without it, it only waits longer.
    void place.boxes.put(name, 'done', new Uint8Array([1])).catch(() => undefined);
    const { source, seen } = place;
    return SealedWorkspace.opened(this.#pool, this.#lease, {
      source,
      name: opened.name,
      ...(seen && { seen }),
    });
  }

  async #look({ place, name }: Found, signal: AbortSignal) {
    const grant = await place.boxes.get(name, 'grant', signal);
    if (grant !== null) return grant;
    if ((await place.boxes.get(name, 'offer', signal)) !== null) return null;
    throw coreError('pairing_ended', 'the other device has left');
  }

  async #accept(grant: Uint8Array) {
    try {
      return await this.#lease.call('pairingAccept', { grant });
    } catch (error) {
      if (!isOf(error, 'wrong_key')) throw error;
      throw coreError('tampered', 'what was granted is not for this browser');
    }
  }

  /** Asks for nothing any more, where it was not let in: what it has put is removed, also while the page goes away. */
  async leave(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const { place, name } = this.#found ?? {};
    const removed = place && name ? place.boxes.remove(name, 'request') : undefined;
    await removed?.catch(() => undefined);
    await this.#lease.end();
    this.#pool.close();
  }
}
