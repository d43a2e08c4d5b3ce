import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { Core } from './core.ts';
import { CODES, CoreError, failedOf } from './error.ts';
import { type PoolWorker, WorkerPool } from './pool.ts';
import type { Call, Reply } from './protocol.ts';
import { StagMeter } from './stag-meter.ts';

/** A worker that says what it is told to say. */
class FakeWorker implements PoolWorker {
  onmessage: PoolWorker['onmessage'] = null;
  onerror: PoolWorker['onerror'] = null;
  calls: Call[] = [];
  isEnded = false;

  postMessage(call: Call, moved: Transferable[] | StructuredSerializeOptions = []): void {
    const options = Array.isArray(moved) ? { transfer: moved } : moved;
    this.calls.push(structuredClone(call, options));
    if (call.name === 'end') queueMicrotask(() => this.say({ kind: 'answer', answer: 1000 }));
  }

  terminate(): void {
    this.isEnded = true;
  }

  say(reply: Reply): void {
    (this.onmessage as ((event: MessageEvent<Reply>) => void) | null)?.(
      new MessageEvent('message', { data: reply }),
    );
  }
}

function started(workers = 2) {
  const made: FakeWorker[] = [];
  const start = () => {
    const worker = new FakeWorker();
    made.push(worker);
    return worker;
  };
  return { core: new Core({ workers, start }), made };
}

const file = new Blob(['bytes']);
const options = { secret: new Uint8Array(32), average: 1024 };
const list = { lengths: new Uint32Array([5]), ids: new Uint8Array(32) };
const turns = () => new Promise((resolve) => setTimeout(resolve));

test('no more workers than there may be are at work, and one that is done gets the next file', async () => {
  const { core, made } = started();
  const jobs = [1, 2, 3].map(() => core.chunk(file, options));
  await turns();
  expect(made.map(({ calls }) => calls.length)).toEqual([1, 1]);
  made[0]?.say({ kind: 'answer', answer: list });
  expect(await jobs[0]).toBe(list);
  await turns();
  expect(made[0]?.calls.map(({ name }) => name)).toEqual(['chunk', 'end', 'chunk']);
  for (const worker of made) worker.say({ kind: 'answer', answer: list });
  await Promise.all(jobs);
  expect(made.length).toBe(2);
  expect(core.memory).toBe(1000);
});

test('what is moved to a worker is gone here, and all else is copied', async () => {
  const worker = new FakeWorker();
  const lease = await new WorkerPool(() => worker, 1).take();
  const given = [1, 2].map((byte) => ({ bytes: new Uint8Array([byte]), isEntry: false }));
  const moved = given.slice(0, 1).map(({ bytes }) => bytes.buffer);
  void lease.call('sealedStep', { reading: 0, given, into: null }, { moved });
  expect(given.map(({ bytes }) => bytes.length)).toEqual([0, 1]);
  const bytes = (byte: number) => ({ bytes: new Uint8Array([byte]) });
  expect(worker.calls[0]?.ask).toMatchObject({ given: [bytes(1), bytes(2)] });
});

test('a long message is sent as a blob, which a page hands on without standing still, and a short one as it is', async () => {
  for (const [length, isBlob] of [
    [1_000, false],
    [70_000, true],
  ] as const) {
    const { core, made } = started();
    const message = new Uint8Array(length).fill(7);
    const genesis = new Uint8Array();
    const block = core.blockDelta(file, { genesis, tuning: 'classic', isReversed: true });
    const ours = core.delta(file, { genesis, base: null });
    await turns();
    for (const worker of made) worker.say({ kind: 'answer', answer: message });
    for (const body of [(await block).opening, (await ours).question]) {
      expect(body instanceof Blob).toBe(isBlob);
      const sent = new Uint8Array(await new Response(body).arrayBuffer());
      expect(new DataView(sent.buffer).getUint32(0, true)).toBe(length);
      expect(Buffer.compare(sent.slice(4), message)).toBe(0);
    }
  }
});

test('a job that is given up ends its worker at once, and the next one gets another', async () => {
  const { core, made } = started(1);
  const stop = new AbortController();
  const [running, waiting] = [stop.signal, stop.signal].map((signal) =>
    core.chunk(file, { ...options, signal }),
  );
  const next = core.chunk(file, options);
  await turns();
  stop.abort(new Error('given up'));
  await expect(running).rejects.toThrow('given up');
  await expect(waiting).rejects.toThrow('given up');
  await turns();
  expect(made.map(({ isEnded }) => isEnded)).toEqual([true, false]);
  made[1]?.say({ kind: 'answer', answer: list });
  expect(await next).toBe(list);
  await expect(core.chunk(file, { ...options, signal: stop.signal })).rejects.toThrow('given up');
});

test('against what was kept a delta is made by one call, and what to keep of it is told although the job is over', async () => {
  const { core, made } = started(1);
  const stop = new AbortController();
  const kept = new Uint8Array([1, 2]);
  const beginning = core.delta(file, {
    genesis: kept,
    base: kept,
    isKept: true,
    signal: stop.signal,
  });
  await turns();
  made[0]?.say({ kind: 'part', bytes: new Uint8Array([3]) });
  made[0]?.say({ kind: 'answer', answer: { length: 1, literal: 1 } });
  const delta = await beginning;
  expect(delta.question).toBeNull();
  expect(await delta.messages()).toEqual({ length: 1, literal: 1, body: new Uint8Array([3]) });
  expect(made[0]?.calls.map(({ name }) => name)).toEqual(['deltaOfKept']);
  const keeping = delta.kept();
  stop.abort();
  made[0]?.say({ kind: 'answer', answer: kept });
  expect(await keeping).toBe(kept);
  await delta.end();
  expect(made.map(({ isEnded }) => isEnded)).toEqual([false]);
});

test('a failure has a code, and a worker with a defect is not used again', async () => {
  const { core, made } = started(1);
  for (const code of ['read', 'broken'] as const) {
    const job = core.chunk(file, options);
    await turns();
    const failed = { code, message: 'text', isRetryable: code === 'read' };
    made.at(-1)?.say({ kind: 'failed', failed });
    const error = await job.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(CoreError);
    expect(error).toMatchObject(failed);
    await turns();
  }
  expect(made.map(({ isEnded }) => isEnded)).toEqual([true]);
  const job = core.chunk(file, options);
  await turns();
  made[1]?.onerror?.call(made[1] as unknown as Worker, new Event('error') as ErrorEvent);
  await expect(job).rejects.toMatchObject({ code: 'broken' });
});

test('a closed core takes no more, and ends its workers', async () => {
  const { core, made } = started(1);
  const running = core.chunk(file, options);
  const waiting = core.chunk(file, options);
  await turns();
  core.close();
  await expect(waiting).rejects.toMatchObject({ code: 'broken' });
  made[0]?.say({ kind: 'answer', answer: list });
  await running;
  await turns();
  expect(made.map(({ isEnded }) => isEnded)).toEqual([true]);
});

test('codes are those of the Rust errors, and some of this side', () => {
  const sourceOf = (name: string) =>
    readFileSync(new URL(`../../../../crates/wasm/src/${name}.rs`, import.meta.url), 'utf8');
  const found = [
    ...sourceOf('failure').matchAll(/=> "([a-z_]+)",/g),
    ...['sealed_making', 'sealed_writing', 'sealed_member', 'sealed_search', 'pairing'].flatMap(
      (name) => [...sourceOf(name).matchAll(/Failure::(?:of|retryable)\(\s*"([a-z_]+)"/g)],
    ),
  ];
  const codes = new Set(found.map(([, code]) => code));
  expect(codes.size).toBeGreaterThan(15);
  const ours = [
    ...['locked', 'no_identity', 'no_envelope', 'older_history', 'other_history'],
    ...['pairing_unknown', 'pairing_ended', 'pairing_expired', 'unsupported', 'broken'],
  ];
  expect(new Set(CODES)).toEqual(new Set([...codes, ...ours]));
});

test('whatever is thrown in a worker gets a code', () => {
  const coded = Object.assign(new Error('text'), { code: 'wrong_base', isRetryable: true });
  expect(failedOf(coded)).toEqual({ code: 'wrong_base', message: 'text', isRetryable: true });
  expect(failedOf(new DOMException('gone')).code).toBe('read');
  expect(failedOf(new RangeError('a defect')).code).toBe('broken');
  expect(failedOf(undefined).code).toBe('broken');
});

test('StagMeter measures the gaps between its ticks', () => {
  vi.useFakeTimers();
  const printed: number[] = [];
  const meter = new StagMeter((timestamp) => printed.push(timestamp));
  meter.start();
  vi.advanceTimersByTime(500);
  expect(meter.stop()).toEqual({ ticks: 5, longest: 100, missed: 0 });
  expect(printed.map((time, index) => time - (printed[index - 1] ?? time))).toEqual([
    0, 100, 100, 100, 100,
  ]);
  meter.start();
  const now = performance.now();
  vi.spyOn(performance, 'now').mockReturnValue(now + 730);
  expect(meter.stop()).toEqual({ ticks: 0, longest: 730, missed: 1 });
  vi.restoreAllMocks();
  vi.useRealTimers();
});
