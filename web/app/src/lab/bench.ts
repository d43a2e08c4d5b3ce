// Runs all methods one after the other on a scratch file, and looks after each whether the server has the new version.

import {
  fetchChunkList,
  fetchGenesis,
  ProblemError,
  randomHex,
  SynclineClient,
} from '@syncline/api';
import { RecipeWorker } from '@syncline/baseline';
import type { Core } from '@syncline/core';
import { loadCore } from '../core.ts';
import { OLD_LENGTH_MAX } from '../transfers/sketches.ts';
import { measure, type Measured } from './measure.ts';
import { METHOD_NAMES, METHODS, type Exchange, type MethodName } from './methods.ts';
import { Wire, type Traffic } from './wire.ts';

export interface Plan {
  workspace: string;
  base: Blob;
  file: Blob;
  /** How often each method is run. */
  runs: number;
  /** Which ones; all of them where nothing is said. */
  methods?: MethodName[];
  /** For how long the meter ticks before and after each, in milliseconds. */
  calm?: number;
}

export interface Row extends Measured, Traffic {
  method: MethodName;
  /** From 1 on. */
  run: number;
  /** Whether the server has the new version, byte by byte. */
  isSame: boolean;
  /** Why the method gave up; then its figures say nothing. */
  failure: unknown;
}

export interface BenchHooks {
  onBegin: (method: MethodName, run: number) => void;
  onTick: (timestamp: number) => void;
  onRow: (row: Row) => void;
  /** Is there before and after each measurement. */
  around?: <T>(deed: () => Promise<T>) => Promise<T>;
}

/** The scratch file could not be deleted. */
export class ScratchLeft extends Error {
  override readonly name = 'ScratchLeft';
}

const TYPE = 'application/octet-stream';

const scratchName = () => `syncline-lab-${randomHex(6)}.bin`;

/** Compares what comes with a file, a piece at a time. */
async function isSame(body: ReadableStream<Uint8Array>, file: Blob): Promise<boolean> {
  const reader = body.getReader();
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return at === file.size;
    const own = new Uint8Array(await file.slice(at, at + value.length).arrayBuffer());
    if (own.length !== value.length || !value.every((byte, index) => byte === own[index])) {
      await reader.cancel();
      return false;
    }
    at += value.length;
  }
}

/** Returns what a client keeps of a version that it has sent. */
async function keptOf(core: Core, file: Blob, genesis: Uint8Array, list: Uint8Array) {
  const delta = await core.delta(file, { genesis, base: list });
  try {
    await delta.messages();
    const kept = await delta.kept();
    if (!kept) throw new Error('nothing can be kept of this version');
    return kept;
  } finally {
    await delta.end();
  }
}

/** Runs a plan. The scratch file is deleted in the end; what fails in a method is in its row, anything else is thrown. */
export async function runAll(
  token: string | null,
  { workspace, base, file, runs, calm, methods = METHOD_NAMES }: Plan,
  hooks: BenchHooks,
  signal: AbortSignal,
): Promise<void> {
  const wire = new Wire();
  const client = new SynclineClient({ token, fetch: wire.fetch });
  // What is only looked at is not counted, nor kept until it is all there.
  const reader = new SynclineClient({ token });
  const around = hooks.around ?? ((deed) => deed());
  const { startBaseline } = await import('@syncline/core');
  const core = await loadCore();
  const worker = new RecipeWorker(startBaseline());
  const path = scratchName();
  const old = base.slice(0, base.size, TYPE);
  try {
    const put = { condition: { ifAbsent: true } as const, signal };
    const node = await client.putFile(workspace, path, old, put);
    const [genesis, list] = await Promise.all([
      fetchGenesis(client, workspace, signal),
      fetchChunkList(client, workspace, path, signal),
    ]);
    const kept = await keptOf(core, old, genesis, list);
    const shortOld = old.size <= OLD_LENGTH_MAX ? old : undefined;
    const about = { genesis, list, kept, old: shortOld };
    const known = { client, core, worker, workspace, path, signal, ...about };
    const content = file.slice(0, file.size, TYPE);
    for (let run = 1; run <= runs; run++) {
      for (const method of METHOD_NAMES.filter((one) => methods.includes(one))) {
        hooks.onBegin(method, run);
        const { etag } = await client.restore(workspace, node.id, node.version);
        const exchange = { ...known, etag, file: content };
        const { onTick } = hooks;
        const found = await around(() => attempt(method, exchange, wire, { onTick, calm }));
        const { body } = await reader.file(workspace, path, { signal });
        hooks.onRow({ method, run, ...found, isSame: await isSame(body, file) });
      }
    }
  } finally {
    worker.end();
    await cleanUp(client, workspace, path);
  }
}

async function attempt(
  method: MethodName,
  exchange: Exchange,
  wire: Wire,
  { onTick, calm }: { onTick: (timestamp: number) => void; calm: number | undefined },
): Promise<Omit<Row, 'method' | 'run' | 'isSame'>> {
  const { signal } = exchange;
  let failure: unknown;
  let traffic = wire.take();
  const deed = async () => {
    try {
      wire.take();
      await METHODS[method](exchange);
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
    traffic = wire.take();
  };
  const measured = await measure(deed, onTick, signal, calm);
  return { ...measured, ...traffic, failure };
}

/** Deletes the scratch file, where it was made. */
async function cleanUp(client: SynclineClient, workspace: string, path: string): Promise<void> {
  try {
    await client.delete(workspace, path);
  } catch (error) {
    if (error instanceof ProblemError && error.code === 'not_found') return;
    throw new ScratchLeft(path, { cause: error });
  }
}
