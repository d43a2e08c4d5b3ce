import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../core/demo/samples.ts';
import { adler, roll } from './adler.ts';
import { hash } from './blake3.ts';
import { Reader } from './bytes.ts';
import { apply, read, sumsOf, type Side, type Step } from './old-side.ts';
import { WebRsync } from './web-rsync.ts';

interface Golden {
  seed: number;
  size: number;
  edits: [at: number, cut: number, seed: number, length: number][];
  tuning: string;
  isReversed: boolean;
  begun: string;
  said: string;
  messages: string;
  literal: number;
}

const golden = (name: string) =>
  readFileSync(new URL(`../../../../crates/wasm/golden/${name}.json`, import.meta.url), 'utf8');
const { genesis, session } = JSON.parse(golden('deltas')) as { genesis: string; session: string };
const SIDE: Side = { genesis: Buffer.from(genesis, 'hex'), session: Buffer.from(session, 'hex') };
const BLOCK = 512;

const sum = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

function edited(old: Uint8Array, edits: Golden['edits']): Uint8Array {
  return edits.reduce(
    (file, [at, cut, seed, length]) =>
      Buffer.concat([file.subarray(0, at), bytesOf(seed, length), file.subarray(at + cut)]),
    old,
  );
}

function unframed(body: Uint8Array): Uint8Array {
  const frames = new Reader(body);
  const messages: Uint8Array[] = [];
  while (frames.rest > 0) {
    messages.push(frames.raw(Buffer.from(frames.raw(4)).readUInt32LE()));
  }
  return Buffer.concat(messages);
}

/** Sends a file, and returns what the other side makes of it. */
function sent(old: Uint8Array, file: Uint8Array, sums = sumsOf(old, BLOCK, SIDE)) {
  const { body, literal } = new WebRsync(SIDE).recipe(sums, file);
  const said = read(body, SIDE.session);
  const made = apply(said, old, BLOCK);
  return { said, made, literal };
}

test('the messages are those of the program, to the byte', () => {
  const cases = (JSON.parse(golden('blocks')) as Golden[]).filter(
    ({ tuning, isReversed }) => tuning === 'classic' && !isReversed,
  );
  expect(cases.length).toBeGreaterThanOrEqual(4);
  for (const { begun, said, messages, literal, seed, size, edits } of cases) {
    const exchange = new WebRsync(SIDE);
    const file = edited(bytesOf(seed, size), edits);
    const made = exchange.recipe(Buffer.from(said, 'hex'), file);
    expect(sum(unframed(exchange.opening))).toBe(begun);
    expect(sum(unframed(made.body)), JSON.stringify(edits)).toBe(messages);
    expect(made.literal).toBe(literal);
  }
});

test('a long file goes in parts that the other side puts together', () => {
  const old = bytesOf(1, 40_000);
  const file = edited(old, [
    [10_000, 3, 2, 700_000],
    [0, 0, 3, 300_000],
  ]);
  const { body } = new WebRsync(SIDE).recipe(sumsOf(old, BLOCK, SIDE), file);
  const { said, made, literal } = sent(old, file);
  expect(sum(made)).toBe(sum(file));
  expect(Buffer.from(said.hash).equals(hash(file))).toBe(true);
  expect(literal).toBeLessThan(1_000_000 + 2 * BLOCK);
  // Messages have 256 KiB and a little at most.
  for (const frames = new Reader(body); frames.rest > 0;) {
    const length = Buffer.from(frames.raw(4)).readUInt32LE();
    expect(length).toBeLessThan(257 * 1024);
    frames.raw(length);
  }
});

test('empty files, old or new', () => {
  const some = bytesOf(1, 1_500);
  const none = new Uint8Array();
  for (const [old, file] of [
    [none, none],
    [none, some],
    [some, none],
    [some, some],
  ] as const) {
    const { made, literal } = sent(old, file);
    expect(sum(made)).toBe(sum(file));
    expect(literal).toBe(old === file ? 0 : file.length);
  }
});

test('blocks whose weak sums are equal are told apart', () => {
  const old = bytesOf(5, 4 * BLOCK);
  const file = old.slice();
  for (let start = 0; start < file.length; start += BLOCK) {
    // One up, two down, one up: both halves of Adler-32 stay.
    const at = [start + 100, start + 101, start + 102] as const;
    [file[at[0]], file[at[1]], file[at[2]]] = [10, 20, 30];
    [old[at[0]], old[at[1]], old[at[2]]] = [11, 18, 31];
  }
  expect(adler(old, 0, BLOCK)).toBe(adler(file, 0, BLOCK));
  const { said, made, literal } = sent(old, file);
  expect(said.steps.every((step) => 'bytes' in step)).toBe(true);
  expect(literal).toBe(file.length);
  expect(sum(made)).toBe(sum(file));
});

test('a search that is led astray at every byte is given up, and the rest is sent', () => {
  const real = bytesOf(8, BLOCK);
  const sums = sumsOf(Buffer.concat([real, new Uint8Array(BLOCK)]), BLOCK, SIDE);
  // The weak sum of zeros stays, and no zeros have this fingerprint.
  const forged = sums.slice().fill(1, -16);
  // 16 MiB may be fingerprinted in vain, and four bytes for each of the file.
  for (const [zeros, isGivenUp] of [
    [10_000, false],
    [80_000, true],
  ] as const) {
    const file = Buffer.concat([new Uint8Array(zeros), real]);
    const { said, literal } = sent(real, file, forged);
    expect(literal).toBe(isGivenUp ? file.length : zeros);
    expect(said.size).toBe(file.length);
  }
});

test('what is no message of this session is an error with a code', () => {
  const sums = sumsOf(bytesOf(1, 2_000), BLOCK, SIDE);
  const other = sumsOf(bytesOf(1, 2_000), BLOCK, { ...SIDE, session: bytesOf(9, 16) });
  const code = (message: Uint8Array) => {
    try {
      new WebRsync(SIDE).recipe(message, new Uint8Array());
    } catch (error) {
      return (error as { code?: string }).code;
    }
    return undefined;
  };
  expect(code(sums)).toBeUndefined();
  expect(code(other)).toBe('wrong_session');
  for (let length = 0; length < sums.length; length++) {
    expect(code(sums.subarray(0, length)), String(length)).toBe('message');
  }
  for (const [at, value] of [
    [0, 1],
    [2, 2],
    [21, 31],
    [22, 8],
  ] as const) {
    const wrong = sums.slice();
    wrong[at] = value;
    expect(code(wrong), String(at)).toBe('message');
  }
});

test('the sum that rolls is the sum of what is in the window', () => {
  const bytes = Uint8Array.from([...bytesOf(3, 3_000), ...new Uint8Array(2_000).fill(255)]);
  for (const length of [1, 7, 600, 4_000]) {
    let weak = adler(bytes, 0, length);
    for (let at = 1; at + length <= bytes.length; at++) {
      weak = roll(weak, length, bytes[at - 1] ?? 0, bytes[at + length - 1] ?? 0);
      if (at % 97 === 0 || at + length === bytes.length) {
        expect(weak).toBe(adler(bytes, at, at + length));
      }
    }
  }
  expect(adler(new TextEncoder().encode('Wikipedia'), 0, 9)).toBe(0x11e60398);
});

describe('10,000 random edits', () => {
  let state = 7;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const same = (one: Uint8Array, other: Uint8Array) => Buffer.compare(one, other) === 0;

  /** The steps that a search by comparing bytes gives: no sums, no index. */
  function plain(old: Uint8Array, file: Uint8Array): Step[] {
    const steps: Step[] = [];
    const full = Math.floor(old.length / BLOCK);
    const block = (index: number) => old.subarray(index * BLOCK, (index + 1) * BLOCK);
    let [cursor, expected] = [0, 0];
    const take = (at: number, found: number) => {
      if (at > cursor) steps.push({ bytes: file.subarray(cursor, at) });
      const last = steps.at(-1);
      if (last && 'count' in last && last.block + last.count === found) last.count++;
      else steps.push({ block: found, count: 1 });
      cursor = at + block(found).length;
      expected = found + 1;
    };
    for (let at = 0; at + BLOCK <= file.length;) {
      const here = file.subarray(at, at + BLOCK);
      let found = expected < full && same(block(expected), here) ? expected : 0;
      while (found < full && !same(block(found), here)) found++;
      if (found < full) take(at, found);
      at = found < full ? cursor : at + 1;
    }
    const short = block(full);
    const at = file.length - short.length;
    if (short.length > 0 && at >= cursor && same(short, file.subarray(at))) take(at, full);
    if (cursor < file.length) steps.push({ bytes: file.subarray(cursor) });
    return steps;
  }

  test('give the new file, by the steps of a plain search', { timeout: 300_000 }, () => {
    let literals = 0;
    for (let number = 0; number < 10_000; number++) {
      // Every third file has few values, so that blocks are equal to others.
      const mask = number % 3 === 0 ? 0 : 255;
      const old = bytesOf(number, random(6 * BLOCK), mask);
      let file: Uint8Array = old;
      for (let edit = random(4); edit > 0; edit--) {
        const [at, cut] = [random(file.length + 1), random(5) === 0 ? random(BLOCK) : random(3)];
        file = edited(file, [[at, cut, number + edit, random(3) === 0 ? random(BLOCK) : 1]]);
      }
      const { said, made, literal } = sent(old, file);
      const isSame = same(made, file) && same(said.hash, hash(file)) && said.size === file.length;
      const told = plain(old, file);
      const text = (steps: Step[]) =>
        steps
          .map((step) => ('bytes' in step ? sum(step.bytes) : `${step.block}x${step.count}`))
          .join(' ');
      if (!isSame || text(said.steps) !== text(told)) {
        expect({ number, isSame, steps: text(said.steps) }).toEqual({
          number,
          isSame: true,
          steps: text(told),
        });
      }
      literals += literal;
    }
    expect(literals).toBeGreaterThan(0);
  });
});
