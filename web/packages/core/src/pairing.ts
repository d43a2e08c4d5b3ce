// How a device is let into a sealed workspace by a code that a person carries: the protocol is in the worker; here boxes are looked for, and
// one side waits for the other.

import { coreError } from './sealed-opening.ts';

type Bytes = Uint8Array<ArrayBuffer>;

export const PARTS = ['offer', 'request', 'grant', 'done'] as const;
export type PairingPart = (typeof PARTS)[number];

/** How often is looked. */
const PAUSE_MS = 1000;

/** Where the boxes of the pairings of a workspace lie: at a server that can do nothing with them. */
export interface PairingBoxes {
  get(name: string, part: PairingPart, signal?: AbortSignal): Promise<Bytes | null>;
  /** Puts a box where there is none; says whether there was none. */
  put(name: string, part: PairingPart, bytes: Bytes, signal?: AbortSignal): Promise<boolean>;
  /** Removes a box if there is one, also while the page goes away. */
  remove(name: string, part: PairingPart): Promise<void>;
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = () => {
      signal.removeEventListener('abort', over);
      clearTimeout(timer);
      if (signal.aborted) reject(signal.reason as Error);
      else resolve();
    };
    const timer = setTimeout(over, PAUSE_MS);
    signal.addEventListener('abort', over);
  });
}

/** Looks until there is something, or until a moment in milliseconds since 1970; then it throws `pairing_expired`. */
export async function waitFor<T>(
  look: () => Promise<T | null>,
  until: number,
  signal: AbortSignal,
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    // A computer that slept has not counted: what time it is decides.
    if (Date.now() >= until) throw coreError('pairing_expired', 'nobody has answered in time');
    const found = await look();
    if (found !== null) return found;
    await pause(signal);
  }
}

/** Puts a box; says whether it lies there, by this call or by one whose answer was lost. */
export async function putBox(
  boxes: PairingBoxes,
  [name, part, bytes]: [string, PairingPart, Bytes],
  signal: AbortSignal,
): Promise<boolean> {
  if (await boxes.put(name, part, bytes, signal)) return true;
  const found = await boxes.get(name, part, signal);
  return found?.length === bytes.length && found.every((byte, at) => byte === bytes[at]);
}
