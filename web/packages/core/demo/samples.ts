const STEP = 0x9e37_79b9_7f4a_7c15n;
const MIXES = [0xbf58_476d_1ce4_e5b9n, 0x94d0_49bb_1331_11ebn] as const;

/** Bytes of SplitMix64, as the tests of `crates/wasm` make them, each ANDed with a mask. */
export function bytesOf(seed: number, length: number, mask = 255): Uint8Array<ArrayBuffer> {
  const words = new BigUint64Array(Math.ceil(length / 8));
  let state = BigInt(seed);
  for (let index = 0; index < words.length; index++) {
    state = BigInt.asUintN(64, state + STEP);
    let value = state;
    value = BigInt.asUintN(64, (value ^ (value >> 30n)) * MIXES[0]);
    value = BigInt.asUintN(64, (value ^ (value >> 27n)) * MIXES[1]);
    words[index] = value ^ (value >> 31n);
  }
  const bytes = new Uint8Array(words.buffer, 0, length).slice();
  if (mask !== 255)
    for (let index = 0; index < length; index++) bytes[index] = (bytes[index] ?? 0) & mask;
  return bytes;
}
