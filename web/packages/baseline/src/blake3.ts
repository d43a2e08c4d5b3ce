// BLAKE3 in plain JavaScript, after section 2 of its paper (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020). The bytes lie in memory
// as a whole, so the tree is built at once.

const START = 1;
const END = 2;
const PARENT = 4;
const ROOT = 8;
const KEYED = 16;
const CONTEXT = 32;
const MATERIAL = 64;

const BLOCK_LENGTH = 64;
const CHUNK_LENGTH = 1024;
const KEY_LENGTH = 32;

const IV = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);

const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/** The words of a message in the order in which each of the seven rounds takes them. */
const SCHEDULE = (() => {
  let order = PERMUTATION.map((_, index) => index);
  const rounds: number[] = [];
  for (let round = 0; round < 7; round++) {
    rounds.push(...order);
    order = PERMUTATION.map((from) => order[from] ?? 0);
  }
  return Uint8Array.from(rounds);
})();

const state = new Int32Array(16);
const words = new Int32Array(16);
const block = new Uint8Array(words.buffer);

/** Mixes two words of the block into four words of the state. */
function mix(a: number, b: number, c: number, d: number, at: number): void {
  let va = state[a] as number;
  let vb = state[b] as number;
  let vc = state[c] as number;
  let vd = state[d] as number;
  va = (va + vb + (words[SCHEDULE[at] as number] as number)) | 0;
  vd ^= va;
  vd = (vd >>> 16) | (vd << 16);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb >>> 12) | (vb << 20);
  va = (va + vb + (words[SCHEDULE[at + 1] as number] as number)) | 0;
  vd ^= va;
  vd = (vd >>> 8) | (vd << 24);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb >>> 7) | (vb << 25);
  state[a] = va;
  state[b] = vb;
  state[c] = vc;
  state[d] = vd;
}

/** Compresses the block that stands in `words` into `out`, which may be `chaining`. */
function compress(
  chaining: Uint32Array,
  counter: number,
  length: number,
  flags: number,
  out: Uint32Array,
): void {
  state.set(chaining);
  for (let word = 0; word < 4; word++) state[8 + word] = IV[word] as number;
  state[12] = counter;
  state[13] = Math.floor(counter / 2 ** 32);
  state[14] = length;
  state[15] = flags;
  for (let at = 0; at < SCHEDULE.length; at += 16) {
    mix(0, 4, 8, 12, at);
    mix(1, 5, 9, 13, at + 2);
    mix(2, 6, 10, 14, at + 4);
    mix(3, 7, 11, 15, at + 6);
    mix(0, 5, 10, 15, at + 8);
    mix(1, 6, 11, 12, at + 10);
    mix(2, 7, 8, 13, at + 12);
    mix(3, 4, 9, 14, at + 14);
  }
  for (let word = 0; word < 8; word++) {
    out[word] = (state[word] as number) ^ (state[word + 8] as number);
  }
}

/** Puts bytes into `words`, and zeros behind them. */
function load(bytes: Uint8Array, start: number, length: number): void {
  if (length < BLOCK_LENGTH) block.fill(0);
  for (let at = 0; at < length; at++) block[at] = bytes[start + at] as number;
}

/** Compresses a chunk; `last` is ROOT where it is the only one. */
function chunk(
  bytes: Uint8Array,
  counter: number,
  key: Uint32Array,
  flags: number,
  last: number,
): Uint32Array {
  const chaining = key.slice();
  for (let start = 0; start === 0 || start < bytes.length; start += BLOCK_LENGTH) {
    const length = Math.min(BLOCK_LENGTH, bytes.length - start);
    load(bytes, start, length);
    const isLast = start + BLOCK_LENGTH >= bytes.length;
    const kind = flags | (start === 0 ? START : 0) | (isLast ? END | last : 0);
    compress(chaining, counter, length, kind, chaining);
  }
  return chaining;
}

function tree(bytes: Uint8Array, key: Uint32Array, flags: number): Uint8Array {
  const parent = (left: Uint32Array, right: Uint32Array, last: number) => {
    words.set(left);
    words.set(right, 8);
    const out = new Uint32Array(8);
    compress(key, 0, BLOCK_LENGTH, flags | PARENT | last, out);
    return out;
  };
  const count = Math.max(1, Math.ceil(bytes.length / CHUNK_LENGTH));
  const stack: Uint32Array[] = [];
  for (let index = 0; index < count; index++) {
    const part = bytes.subarray(index * CHUNK_LENGTH, (index + 1) * CHUNK_LENGTH);
    let node = chunk(part, index, key, flags, count === 1 ? ROOT : 0);
    if (index === count - 1) {
      // What is left of the stack are the subtrees from the right to the left.
      for (let left = stack.pop(); left; left = stack.pop()) {
        node = parent(left, node, stack.length === 0 ? ROOT : 0);
      }
      return new Uint8Array(node.buffer);
    }
    // A subtree is complete for each power of two in the number of chunks so far.
    for (let chunks = index + 1; chunks % 2 === 0; chunks /= 2) {
      node = parent(stack.pop() ?? node, node, 0);
    }
    stack.push(node);
  }
  throw new Error('there is at least one chunk');
}

function keyWords(key: Uint8Array): Uint32Array {
  if (key.length !== KEY_LENGTH) throw new RangeError('a key has 32 bytes');
  return new Uint32Array(key.slice().buffer);
}

/** BLAKE3-256. */
export function hash(bytes: Uint8Array): Uint8Array {
  return tree(bytes, IV, 0);
}

/** BLAKE3-256 with a key of 32 bytes. */
export function keyedHash(key: Uint8Array, bytes: Uint8Array): Uint8Array {
  return tree(bytes, keyWords(key), KEYED);
}

/** BLAKE3 in its mode of key derivation. */
export function deriveKey(context: string, material: Uint8Array): Uint8Array {
  const key = tree(new TextEncoder().encode(context), IV, CONTEXT);
  return tree(material, keyWords(key), MATERIAL);
}
