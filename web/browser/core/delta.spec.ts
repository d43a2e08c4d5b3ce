// Deltas of the core in a real browser: the messages that travel are those of the program, to the byte.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Demo } from '../../packages/core/demo/main.ts';
import { serve } from '../../scripts/serve.mjs';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const root = fileURLToPath(new URL('../../packages/core/demo/dist', import.meta.url));
let served: Awaited<ReturnType<typeof serve>>;

test.beforeAll(async () => {
  served = await serve({ root });
});

test.afterAll(() => served.close());

declare const demo: Demo;

interface Golden {
  genesis: string;
  session: string;
  /** What asks for the first symbols of any chunk list. */
  begun: string;
  cases: {
    seed: number;
    size: number;
    edits: [at: number, cut: number, seed: number, length: number][];
    base: string;
    /** The answer to what was begun, where it tells the whole list. */
    symbols: string | null;
    ask: string | null;
    sums: string | null;
    literal: number;
    messages: string;
    kept: string;
    back: string;
  }[];
}

const goldenFile = new URL('../../../crates/wasm/golden/deltas.json', import.meta.url);
const golden = JSON.parse(readFileSync(goldenFile, 'utf8')) as Golden;

interface GoldenBlocks {
  seed: number;
  size: number;
  edits: [at: number, cut: number, seed: number, length: number][];
  tuning: 'classic' | 'plus' | 'careful';
  isReversed: boolean;
  begun: string;
  said: string;
  messages: string;
  literal: number;
  answer: string;
}

const blocksFile = new URL('../../../crates/wasm/golden/blocks.json', import.meta.url);
const blocks = JSON.parse(readFileSync(blocksFile, 'utf8')) as GoldenBlocks[];

/** Takes the messages from behind their lengths. */
function unframed(body: number[]): Buffer {
  const bytes = Buffer.from(body);
  const messages: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const end = start + 4 + bytes.readUInt32LE(start);
    messages.push(bytes.subarray(start + 4, end));
    start = end;
  }
  return Buffer.concat(messages);
}

test('golden edits travel as natively, to the byte, there and back', async ({ page }) => {
  await page.goto(served.url);
  await page.waitForFunction(() => 'demo' in globalThis);
  const { genesis, session, begun, cases } = golden;
  expect(cases.length).toBeGreaterThanOrEqual(8);
  for (const one of cases) {
    const { ask, literal, messages, kept, back, ...made } = one;
    const found = await page.evaluate(
      async ({ genesis, session, base, symbols, sums, seed, size, edits }) => {
        const bytes = (hex: string) =>
          Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
        const old = new Blob([demo.bytesOf(seed, size)]);
        let file = old;
        for (const [at, cut, seed, length] of edits) {
          const put = demo.bytesOf(seed, length);
          file = new Blob([file.slice(0, at), put, file.slice(at + cut)]);
        }
        const core = new demo.Core();
        const options = { genesis: bytes(genesis), session: bytes(session) };
        const delta = await core.delta(file, { ...options, base: bytes(base) });
        const { question } = delta;
        if (sums !== null) await delta.take(bytes(sums));
        const there = await delta.messages();
        const kept = await delta.kept();
        await delta.end();
        if (!kept) throw new Error('nothing was kept');
        const next = await core.delta(old, { ...options, base: kept, isKept: true });
        const back = await next.messages();
        await next.end();
        const exact = await core.delta(old, { ...options, base: kept, isKept: true, old: file });
        const { literal: least } = await exact.messages();
        await exact.end();
        // The same where not even the list is known.
        const learning = await core.delta(file, { ...options, base: null });
        const begun = learning.question;
        let learnt: { question: typeof begun; body: Blob | Uint8Array<ArrayBuffer> } | undefined;
        if (symbols !== null) {
          await learning.take(bytes(symbols));
          const { question } = learning;
          if (sums !== null) await learning.take(bytes(sums));
          learnt = { question, body: (await learning.messages()).body };
        }
        await learning.end();
        core.close();
        const list = async (body: Blob | Uint8Array<ArrayBuffer>) => [
          ...new Uint8Array(await new Response(body).arrayBuffer()),
        ];
        const sent = await list(there.body);
        return {
          question: question && (await list(question)),
          begun: begun && (await list(begun)),
          learnt: learnt && {
            question: learnt.question && (await list(learnt.question)),
            body: await list(learnt.body),
          },
          isWholeBody: there.length === sent.length,
          literal: there.literal,
          least,
          there: sent,
          kept: [...kept],
          back: await list(back.body),
        };
      },
      { genesis, session, ...made },
    );
    const said = {
      ask: found.question && unframed(found.question).toString('hex'),
      literal: found.literal,
      messages: sum(unframed(found.there)),
      kept: sum(Uint8Array.from(found.kept)),
      back: sum(unframed(found.back)),
    };
    expect(found.begun && unframed(found.begun).toString('hex')).toBe(begun);
    if (found.learnt) {
      const { question, body } = found.learnt;
      expect(question && unframed(question).toString('hex')).toBe(ask);
      expect(sum(unframed(body))).toBe(messages);
    }
    expect(found.isWholeBody).toBe(true);
    expect(said, JSON.stringify(made.edits)).toEqual({ ask, literal, messages, kept, back });
    // With the old bytes at hand nothing is sent but what was cut.
    const cut = made.edits.reduce((sum, [, cut]) => sum + cut, 0);
    expect(found.least, JSON.stringify(made.edits)).toBeLessThanOrEqual(cut);
  }
});

test('the deltas of the paper travel as natively, to the byte', async ({ page }) => {
  await page.goto(served.url);
  await page.waitForFunction(() => 'demo' in globalThis);
  const { genesis, session } = golden;
  expect(blocks.length).toBeGreaterThanOrEqual(12);
  for (const { begun, messages, literal, ...made } of blocks) {
    const found = await page.evaluate(
      async ({ genesis, session, said, answer, seed, size, edits, tuning, isReversed }) => {
        const bytes = (hex: string) =>
          Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
        let file = new Blob([demo.bytesOf(seed, size)]);
        for (const [at, cut, seed, length] of edits) {
          const put = demo.bytesOf(seed, length);
          file = new Blob([file.slice(0, at), put, file.slice(at + cut)]);
        }
        const core = new demo.Core();
        const options = { genesis: bytes(genesis), session: bytes(session), tuning, isReversed };
        const delta = await core.blockDelta(file, options);
        const { body, literal } = await delta.reply(bytes(said));
        const isDone = await delta.takeAnswer(bytes(answer));
        await delta.end();
        core.close();
        const list = async (body: Blob | Uint8Array<ArrayBuffer>) => [
          ...new Uint8Array(await new Response(body).arrayBuffer()),
        ];
        return { opening: await list(delta.opening), body: await list(body), literal, isDone };
      },
      { genesis, session, ...made },
    );
    const said = {
      begun: sum(unframed(found.opening)),
      messages: sum(unframed(found.body)),
      literal: found.literal,
      isDone: found.isDone,
    };
    const what = `${made.tuning} ${made.isReversed} ${JSON.stringify(made.edits)}`;
    expect(said, what).toEqual({ begun, messages, literal, isDone: true });
  }
});

test('a delta against what is none is an error with a code, and leaves the worker to others', async ({
  page,
}) => {
  await page.goto(served.url);
  await page.waitForFunction(() => 'demo' in globalThis);
  const genesis = [...Buffer.from(golden.genesis, 'hex')];
  const codes = await page.evaluate(async (genesis) => {
    const core = new demo.Core({ workers: 1 });
    const codes: unknown[] = [];
    const file = new Blob(['text']);
    const base = new Uint8Array([1, 2, 3]);
    for (const bytes of [genesis, [4, 5]]) {
      const failed = core.delta(file, { genesis: new Uint8Array(bytes), base });
      await failed.catch((error: unknown) => {
        codes.push(error instanceof demo.CoreError && error.code);
      });
    }
    const list = await core.chunk(file, { secret: new Uint8Array(32), average: 1024 });
    core.close();
    return [...codes, list.lengths.length];
  }, genesis);
  expect(codes).toEqual(['message', 'message', 1]);
});
