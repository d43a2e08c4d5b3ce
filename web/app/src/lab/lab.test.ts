import { expect, test } from 'vitest';
import { hash } from '../../../packages/baseline/src/blake3.ts';
import type { Row } from './bench.ts';
import { barOf, computedIn, csvOf, middleOf } from './results.ts';
import { bytesOf, edited, EDIT_KINDS, spliced, type Edit } from './sample.ts';
import golden from './sample.golden.json' with { type: 'json' };
import { Wire } from './wire.ts';

/** A file, and the BLAKE3 of its old and new version. */
interface Golden extends Edit {
  length: number;
  old: string;
  new: string;
}

const edit = (more: Partial<Edit>): Edit => ({
  kind: 'insert',
  size: 10,
  places: 1,
  seed: 1,
  ...more,
});

/** Whether all bytes of one stand in the other, in order. */
function isWithin(less: Uint8Array, more: Uint8Array): boolean {
  let at = 0;
  for (const byte of more) if (byte === less[at]) at++;
  return at === less.length;
}

test('a seed gives the same file and the same edit, and another one others', () => {
  expect(bytesOf(7, 1_001)).toEqual(bytesOf(7, 1_001));
  expect(bytesOf(7, 1_001)).not.toEqual(bytesOf(8, 1_001));
  const old = bytesOf(1, 5_000);
  const [one, other] = [edit({ seed: 3, places: 5 }), edit({ seed: 4, places: 5 })];
  expect(edited(old, one)).toEqual(edited(old, one));
  expect(edited(old, one)).not.toEqual(edited(old, other));
});

test('a file on the disk is edited as one in memory', async () => {
  const old = bytesOf(1, 5_000);
  for (const kind of EDIT_KINDS) {
    for (const places of [1, 7]) {
      const made = edit({ kind, places, size: 100, seed: 3 });
      const found = new Uint8Array(await spliced(new Blob([old]), made).arrayBuffer());
      expect(found).toEqual(edited(old, made));
    }
  }
});

test('the bytes are those that programs outside of the browser make of the same seed', () => {
  const hex = (bytes: Uint8Array) => Buffer.from(hash(bytes)).toString('hex');
  for (const { seed, length, old, new: edit, ...how } of golden as Golden[]) {
    const base = bytesOf(seed, length);
    expect(hex(base)).toBe(old);
    expect(hex(edited(base, { ...how, seed }))).toBe(edit);
  }
});

test('an edit is as long as it says, in as many places, and the rest stays', () => {
  for (let seed = 0; seed < 35; seed++) {
    const old = bytesOf(seed, (seed % 7) * 300);
    for (const size of [1, 10, 1_000]) {
      for (const places of [1, 3, 20]) {
        const put = edited(old, edit({ seed, size, places }));
        expect(put.length).toBe(old.length + size);
        expect(isWithin(old, put)).toBe(true);
        const appended = edited(old, edit({ kind: 'append', seed, size, places }));
        expect(Buffer.compare(appended.subarray(0, old.length), old)).toBe(0);
        expect(appended.length).toBe(old.length + size);
        const cut = edited(old, edit({ kind: 'cut', seed, size, places }));
        expect(cut.length).toBe(Math.max(0, old.length - size));
        expect(isWithin(cut, old)).toBe(true);
      }
    }
  }
  const old = bytesOf(1, 100_000);
  const put = edited(old, edit({ size: 20, places: 20 }));
  let [places, at] = [0, 0];
  for (let index = 0; index < put.length; index++) {
    if (put[index] === old[at]) at++;
    else places++;
  }
  // A byte that is put in may be the one that stands there.
  expect(places).toBeGreaterThan(15);
  expect(places).toBeLessThanOrEqual(20);
});

test('bodies are counted, and requests at the same time are one round trip', async () => {
  const answers = [
    new Response('four'),
    new Response(null, { status: 204 }),
    new Response('12345'),
  ];
  const wire = new Wire(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return answers.shift() ?? Response.error();
  });
  const [first, second] = await Promise.all([
    wire.fetch('/a', { body: new Blob(['123']) }),
    wire.fetch('/b', { body: 'text' }),
  ]);
  expect([await first.text(), second.status, await second.text()]).toEqual(['four', 204, '']);
  const { waited, ...traffic } = wire.take();
  expect(traffic).toEqual({ up: 7, down: 4, roundTrips: 1 });
  expect(waited).toBeGreaterThan(3);
  await wire.fetch('/c', { body: new Uint8Array(300) });
  expect(wire.take()).toMatchObject({ up: 300, down: 5, roundTrips: 1 });
  expect(wire.take()).toEqual({ up: 0, down: 0, roundTrips: 0, waited: 0 });
});

test('a request that fails is counted, and the next one is a round trip of its own', async () => {
  let isBroken = true;
  const wire = new Wire(() =>
    isBroken ? Promise.reject(new TypeError('broken')) : Promise.resolve(new Response('x')),
  );
  await expect(wire.fetch('/a', { body: 'ab' })).rejects.toThrow('broken');
  isBroken = false;
  await wire.fetch('/a');
  expect(wire.take()).toMatchObject({ up: 2, down: 1, roundTrips: 2 });
});

const row = (more: Partial<Row>): Row => ({
  method: 'oursKept',
  run: 1,
  time: 10,
  waited: 5,
  up: 100,
  down: 20,
  roundTrips: 1,
  stagnation: { ticks: 5, longest: 101.23, missed: 0 },
  ticks: [],
  longTasks: [],
  isSame: true,
  failure: undefined,
  ...more,
});

test('of several runs the middle one counts, and one that went wrong counts before all', () => {
  const rows = [row({ time: 30 }), row({ time: 10, run: 2 }), row({ time: 20, run: 3 })];
  const other = row({ method: 'whole', time: 7 });
  expect(middleOf([...rows, other])).toEqual([rows[2], other]);
  const bad = row({ time: 1, run: 4, isSame: false });
  expect(middleOf([...rows, bad])).toEqual([bad]);
});

test('what was not waited for was computed, and never less than nothing', () => {
  expect(computedIn(row({ time: 10, waited: 4 }))).toBe(6);
  expect(computedIn(row({ time: 10, waited: 10.1 }))).toBe(0);
});

test('the CSV has a line for each row, with as many fields as its head', () => {
  const about = { ...edit({}), before: 1_000, after: 1_010 };
  const csv = csvOf(
    [
      row({}),
      row({ method: 'whole', longTasks: null }),
      row({ longTasks: [60, 80.4], isSame: false }),
      row({ failure: new Error('a, b') }),
    ],
    about,
  );
  const [head = '', ...lines] = csv.trimEnd().split('\r\n');
  expect(lines.map((line) => line.split(',').length)).toEqual(
    lines.map(() => head.split(',').length),
  );
  expect(lines[0]).toBe('oursKept,1,1000,1010,insert,10,1,1,10.0,5.0,100,20,1,5,101.2,0,0,0,same');
  expect(lines[1]).toMatch(/,0,,,same$/);
  expect(lines[2]).toMatch(/,2,80,different$/);
  expect(lines[3]).toMatch(/,failed$/);
});

test('bars go from nothing to the whole width', () => {
  expect([barOf(0, 0), barOf(0, 10), barOf(10, 10)]).toEqual([0, 0, 1]);
  expect(barOf(99, 9_999)).toBeCloseTo(0.5);
});
