import { PairingGuest, PairingHost, pairingSeconds } from '../dist/core.js';
import type { Calls } from './protocol.ts';
import { SealedWork } from './sealed-work.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** A browser that asks to be let in, in the worker: the key with which it is going to sign is here and nowhere else. */
export class GuestWork {
  readonly #guest: PairingGuest;

  constructor({ id, genesis, code, offer, ...who }: Calls['pairingJoin']['ask']) {
    const { device, deviceName, seed } = who;
    this.#guest = new PairingGuest(id, genesis, code, offer, device, deviceName, seed);
  }

  said(): Calls['pairingJoin']['answer'] {
    const guest = this.#guest;
    const request = guest.request() as Bytes;
    return { host: guest.host(), digits: guest.digits(), request, seconds: pairingSeconds() };
  }

  accept(grant: Uint8Array): SealedWork {
    const work = new SealedWork(this.#guest.accept(grant));
    this.free();
    return work;
  }

  free(): void {
    this.#guest.free();
  }
}

/** A browser that lets a device in, in the worker: the account key is here, until something was granted. */
export class HostWork {
  readonly #host: PairingHost;

  constructor({ id, genesis, generation, keys, secret, ...who }: Calls['pairingOpen']['ask']) {
    const { deviceName, seed } = who;
    this.#host = new PairingHost(id, genesis, generation, keys, secret, deviceName, seed);
  }

  said(): Calls['pairingOpen']['answer'] {
    const host = this.#host;
    const offer = host.offer() as Bytes;
    return { code: host.code(), name: host.name(), offer, seconds: pairingSeconds() };
  }

  ask(request: Uint8Array): Calls['pairingAsk']['answer'] {
    const asked = this.#host.ask(request);
    const { deviceName, digits } = asked;
    asked.free();
    return { deviceName, digits };
  }

  grant(): Bytes {
    return this.#host.grant() as Bytes;
  }

  free(): void {
    this.#host.free();
  }
}
