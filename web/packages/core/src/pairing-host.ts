// The side that lets somebody in.

import { CoreError } from './error.ts';
import { PARTS, putBox, waitFor, type PairingBoxes } from './pairing.ts';
import { WorkerPool, type Lease, type PoolWorker } from './pool.ts';
import type { Calls } from './protocol.ts';
import { coreError, newSeed, openOwn } from './sealed-opening.ts';
import type { SealedSource } from './sealed.ts';
import { startWorker } from './start.ts';

export interface HostOptions {
  /** The id of the workspace, which has to be one's own. */
  id: string;
  /** The passphrase or the recovery key: no device keeps the key that vouches for another. */
  secret: string;
  /** How this browser calls itself. */
  deviceName: string;
  source: SealedSource;
  boxes: PairingBoxes;
  start?: () => PoolWorker;
}

/** This browser, which waits for a device that has its code. */
export class PairingHost {
  readonly #pool: WorkerPool;
  readonly #lease: Lease;
  readonly #boxes: PairingBoxes;
  #name = '';
  #isOver = false;
  /** What a person carries to the other device. */
  code = '';
  /** Until when it holds, in milliseconds since 1970. */
  until = 0;

  private constructor(pool: WorkerPool, lease: Lease, boxes: PairingBoxes) {
    this.#pool = pool;
    this.#lease = lease;
    this.#boxes = boxes;
  }

  /** Makes a code that holds for some minutes. Throws `wrong_key` where the secret is another. */
  static async open({ start, boxes, ...options }: HostOptions): Promise<PairingHost> {
    const pool = new WorkerPool(start ?? startWorker, 1);
    const host = new PairingHost(pool, await pool.take(), boxes);
    try {
      await host.#open(options);
      return host;
    } catch (error) {
      await host.end();
      throw error;
    }
  }

  async #open({ id, secret, deviceName, source }: Omit<HostOptions, 'start' | 'boxes'>) {
    const genesis = await source.genesis();
    const made = await openOwn(source, (kept) =>
      this.#lease.call('pairingOpen', {
        id,
        genesis,
        ...kept,
        secret,
        deviceName,
        seed: newSeed(),
      }),
    );
    [this.code, this.#name] = [made.code, made.name];
    const never = new AbortController().signal;
    if (!(await putBox(this.#boxes, [made.name, 'offer', made.offer], never))) {
      throw coreError('tampered', 'something lies there already');
    }
    this.until = Date.now() + made.seconds * 1000;
  }

  /** Waits for a device that has the code; says how it calls itself, and the digits that it shows. */
  async asked(signal: AbortSignal): Promise<Calls['pairingAsk']['answer']> {
    const look = () => this.#boxes.get(this.#name, 'request', signal);
    return this.#ask(await waitFor(look, this.until, signal));
  }

  async #ask(request: Uint8Array) {
    try {
      return await this.#lease.call('pairingAsk', { request });
    } catch (error) {
      if (!(error instanceof CoreError) || error.code !== 'wrong_key') throw error;
      throw coreError('tampered', 'what lies there is no answer to the offer');
    }
  }

  /** Waits as long as somebody decides; throws `pairing_ended` where the other device leaves, `pairing_expired` when the code is too old. */
  async attend(signal: AbortSignal, isAsked: () => boolean): Promise<void> {
    const look = async () => {
      if (!isAsked()) return true;
      await this.#request(signal);
      return isAsked() ? null : true;
    };
    await waitFor(look, this.until, signal);
  }

  async #request(signal: AbortSignal): Promise<Uint8Array> {
    const request = await this.#boxes.get(this.#name, 'request', signal);
    if (request === null) throw coreError('pairing_ended', 'the other device has left');
    return request;
  }

  /** Lets it in, and waits until it is. Throws `pairing_ended` where it has left meanwhile. */
  async grant(signal: AbortSignal): Promise<void> {
    const [boxes, name] = [this.#boxes, this.#name];
    if (Date.now() >= this.until) throw coreError('pairing_expired', 'the code is too old');
    await this.#ask(await this.#request(signal));
    const grant = await this.#lease.call('pairingGrant', null);
    if (!(await putBox(boxes, [name, 'grant', grant], signal))) {
      throw coreError('tampered', 'something lies there already');
    }
    const look = async () => {
      const done = await boxes.get(name, 'done', signal);
      if (done === null) await this.#request(signal);
      return done;
    };
    await waitFor(look, this.until, signal);
  }

  /** Removes all boxes, so that nobody else gets in by the code, also while the page goes away; and overwrites what was opened. */
  async end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const name = this.#name;
    this.code = '';
    const removed = name === '' ? [] : PARTS.map((part) => this.#boxes.remove(name, part));
    await Promise.allSettled(removed);
    await this.#lease.end();
    this.#pool.close();
  }
}
