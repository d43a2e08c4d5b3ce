// The core in a real browser, under the headers of the server: the same bytes as natively, and a page that does not notice.

import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JSHandle, Page } from '@playwright/test';
import type { Demo } from '../../packages/core/demo/main.ts';
import { serve } from '../../scripts/serve.mjs';
import { rendererMemory } from '../memory.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const root = fileURLToPath(new URL('../../packages/core/demo/dist', import.meta.url));
let served: Awaited<ReturnType<typeof serve>>;

test.beforeAll(async () => {
  served = await serve({ root });
});

test.afterAll(() => served.close());

declare const demo: Demo;

const MIB = 1024 * 1024;

interface Golden {
  seed: number;
  size: number;
  mask: number;
  average: number;
  secret: number;
  chunks: number;
  lengths: string;
  ids: string;
}

const goldenFile = new URL('../../../crates/wasm/golden/chunks.json', import.meta.url);
const golden = JSON.parse(readFileSync(goldenFile, 'utf8')) as Golden[];

const deltasFile = new URL('../../../crates/wasm/golden/deltas.json', import.meta.url);
const deltas = JSON.parse(readFileSync(deltasFile, 'utf8')) as {
  genesis: string;
  cases: { base: string }[];
};

async function open(page: Page): Promise<void> {
  await page.goto(served.url);
  await page.waitForFunction(() => 'demo' in globalThis);
}

const folder = mkdtempSync(join(tmpdir(), 'syncline-core-'));
test.afterAll(() => rmSync(folder, { recursive: true }));

/** Makes a file on the disk and chooses it in the page, which does not have it in memory. */
async function choose(page: Page, mebibytes: number): Promise<JSHandle<File>> {
  const path = join(folder, `${mebibytes}.bin`);
  rmSync(path, { force: true });
  const bytes = randomBytes(16 * MIB);
  for (let written = 0; written < mebibytes; written += 16) appendFileSync(path, bytes);
  await page.locator('input').setInputFiles(path);
  return page.evaluateHandle(() => {
    const file = document.querySelector('input')?.files?.[0];
    if (!file) throw new Error('no file was chosen');
    return file;
  });
}

test('golden files are cut and named as natively, to the byte', async ({ page }) => {
  await open(page);
  expect(golden.length).toBeGreaterThanOrEqual(8);
  for (const { lengths, ids, chunks, ...made } of golden) {
    const found = await page.evaluate(async ({ seed, size, mask, average, secret }) => {
      const core = new demo.Core();
      const file = new Blob([demo.bytesOf(seed, size, mask)]);
      const list = await core.chunk(file, { average, secret: new Uint8Array(32).fill(secret) });
      core.close();
      return { lengths: [...new Uint8Array(list.lengths.buffer)], ids: [...list.ids] };
    }, made);
    const said = { chunks: found.lengths.length / 4, lengths: '', ids: '' };
    said.lengths = sum(Uint8Array.from(found.lengths));
    said.ids = sum(Uint8Array.from(found.ids));
    expect(said, JSON.stringify(made)).toEqual({ chunks, lengths, ids });
  }
});

test('a large file is named while the page goes on, in memory that does not grow with it', async ({
  page,
}) => {
  await open(page);
  const size = 512;
  const file = await choose(page, size);
  const memory = await rendererMemory(page);
  const { genesis, cases } = deltas;
  const known = { genesis, base: cases[0]?.base ?? '' };
  const found = await page.evaluate(
    async ([file, known]) => {
      const bytes = (hex: string) =>
        Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
      const long: number[] = [];
      const observer = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) long.push(entry.duration);
      });
      observer.observe({ type: 'longtask' });
      const meter = new demo.StagMeter();
      const core = new demo.Core();
      const progress: number[] = [];
      meter.start();
      const began = performance.now();
      const list = await core.chunk(file, {
        average: 16384,
        secret: new Uint8Array(32),
        onProgress: (done) => progress.push(done),
      });
      const took = performance.now() - began;
      const delta = await core.delta(file, {
        genesis: bytes(known.genesis),
        base: bytes(known.base),
      });
      const compared = performance.now() - began - took;
      await delta.end();
      await new Promise((resolve) => setTimeout(resolve, 200));
      const stagnation = meter.stop();
      observer.disconnect();
      core.close();
      const length = list.lengths.reduce((sum, length) => sum + length, 0);
      return { took, compared, long, stagnation, progress, length, memory: core.memory };
    },
    [file, known] as const,
  );
  const speed = (took: number) => ((size * MIB) / 1e3 / took).toFixed(0);
  const grown = memory.grown();
  console.log(
    `${size} MiB cut and named in one worker: ${speed(found.took)} MB/s, and sketched for a delta: ` +
      `${speed(found.compared)} MB/s; longest gap between ticks of ` +
      `100 ms: ${found.stagnation.longest.toFixed(0)} ms; ${found.long.length} long tasks; module ` +
      `${(found.memory / MIB).toFixed(1)} MiB, process of the page at most ${(grown / MIB).toFixed(0)} MiB more`,
  );
  expect(found.length).toBe(size * MIB);
  expect(found.progress.at(-1)).toBe(size * MIB);
  expect(found.progress).toEqual(found.progress.toSorted((one, other) => one - other));
  expect(found.long).toEqual([]);
  expect(found.stagnation.ticks).toBeGreaterThan(3);
  expect(found.memory).toBeLessThan(64 * MIB);
  // It is read twice. What was read is given back when the collector comes, on a busy machine some hundred mebibytes later.
  expect(grown).toBeLessThan(size * MIB);
});

test('behind four gibibytes a file is read where it is', async ({ page }) => {
  await open(page);
  const [path, tail] = [join(folder, 'sparse.bin'), randomBytes(3 * MIB)];
  writeFileSync(path, '');
  truncateSync(path, 2 ** 32 - MIB);
  appendFileSync(path, tail);
  await page.locator('input').setInputFiles(path);
  const found = await page.evaluate(async () => {
    const file = document.querySelector('input')?.files?.[0];
    if (!file) throw new Error('no file was chosen');
    const core = new demo.Core();
    const options = { average: 65536, secret: new Uint8Array(32) };
    const whole = await core.chunk(file, options);
    // From a border on, a part of a file is cut as in the whole.
    let [first, start] = [0, 0];
    while (start < 2 ** 32 - 3 * 2 ** 20) start += whole.lengths[first++] ?? 0;
    const part = await core.chunk(file.slice(start), options);
    core.close();
    const length = whole.lengths.reduce((sum, length) => sum + length, 0);
    const ids = [...whole.ids.subarray(first * 32)];
    return { size: file.size, length, ids, part: [...part.ids], start };
  });
  expect(found.size).toBe(2 ** 32 + 2 * MIB);
  expect(found.length).toBe(found.size);
  expect(found.start).toBeLessThan(2 ** 32 - MIB);
  expect(found.ids.length / 32).toBeGreaterThan(20);
  expect(found.ids).toEqual(found.part);
});

test('a job is given up in the middle of a file, and the next one is done', async ({ page }) => {
  await open(page);
  const file = await choose(page, 256);
  const said = await page.evaluate(async (file) => {
    const core = new demo.Core({ workers: 1 });
    const stop = new AbortController();
    const options = { average: 16384, secret: new Uint8Array(32) };
    let seen = 0;
    const onProgress = (done: number) => {
      seen = done;
      stop.abort(new Error('given up'));
    };
    const first = core.chunk(file, { ...options, signal: stop.signal, onProgress });
    const failure = await first.catch((error: unknown) => String(error));
    const next = await core.chunk(file.slice(0, 100), options);
    core.close();
    return { failure, isEarly: seen < file.size, lengths: [...next.lengths] };
  }, file);
  expect(said).toEqual({ failure: 'Error: given up', isEarly: true, lengths: [100] });
});

test('what the core cannot do is an error with a code', async ({ page }) => {
  await open(page);
  const file = await choose(page, 16);
  appendFileSync(join(folder, '16.bin'), 'the file has changed since it was chosen');
  const said = await page.evaluate(async (file) => {
    const core = new demo.Core();
    const secret = new Uint8Array(32);
    const failures: unknown[] = [];
    for (const [blob, average] of [
      [file, 16384],
      [new Blob(['text']), 1000],
    ] as const) {
      await core.chunk(blob, { secret, average }).catch((error: unknown) => {
        if (!(error instanceof demo.CoreError)) throw error;
        failures.push([error.code, error.isRetryable]);
      });
    }
    core.close();
    return failures;
  }, file);
  expect(said).toEqual([
    ['read', true],
    ['invalid_chunk_size', false],
  ]);
});
