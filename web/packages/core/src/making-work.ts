import { SealedMaking } from '../dist/core.js';
import type { Calls } from './protocol.ts';
import { newSeed } from './sealed-opening.ts';
import { SealedWork } from './sealed-work.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** A sealed workspace that is made, in the worker: what its keys follow from is drawn here, and goes nowhere. */
export class MakingWork {
  readonly #making: SealedMaking;

  constructor({ name, passphrase, createdMs }: Calls['sealedMake']['ask']) {
    const seed = newSeed();
    try {
      this.#making = new SealedMaking(name, createdMs, passphrase, seed);
    } finally {
      seed.fill(0);
    }
  }

  made(): Calls['sealedMake']['answer'] {
    const making = this.#making;
    const [genesis, keys] = [making.genesis() as Bytes, making.keys() as Bytes];
    const recoveryKey = making.recoveryKey() ?? '';
    return { id: making.id(), genesis, keys, generation: making.generation(), recoveryKey };
  }

  open({ device, deviceName }: Calls['sealedMade']['ask']): SealedWork {
    const work = new SealedWork(this.#making.open(device, deviceName, newSeed()));
    this.free();
    return work;
  }

  free(): void {
    this.#making.free();
  }
}
