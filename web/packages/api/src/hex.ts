// Bytes as hexadecimal digits: ids, hashes and keys on the wire.

type Bytes = Uint8Array<ArrayBuffer>;

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** So many random bytes, as twice as many digits. */
export function randomHex(length: number): string {
  return hexOf(crypto.getRandomValues(new Uint8Array(length)));
}

export function bytesOfHex(text: string): Bytes {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}
