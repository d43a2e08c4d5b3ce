// Adler-32 (RFC 1950) over a window that moves byte by byte.

const MODULUS = 65521;

/** How many bytes can be added before a sum could no longer be told exactly. */
const STEP = 5552;

/** Returns the Adler-32 of a range of bytes. */
export function adler(bytes: Uint8Array, start: number, end: number): number {
  let low = 1;
  let high = 0;
  for (let from = start; from < end; from += STEP) {
    const to = Math.min(end, from + STEP);
    for (let at = from; at < to; at++) {
      low += bytes[at] as number;
      high += low;
    }
    low %= MODULUS;
    high %= MODULUS;
  }
  return ((high << 16) | low) >>> 0;
}

/** Moves a window of `length` bytes by one byte. */
export function roll(sum: number, length: number, out: number, into: number): number {
  const low = ((sum & 0xffff) - out + into + MODULUS) % MODULUS;
  const high = ((sum >>> 16) + low - ((length * out + 1) % MODULUS) + MODULUS) % MODULUS;
  return ((high << 16) | low) >>> 0;
}
