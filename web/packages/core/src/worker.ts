// A worker: loads the module once, and answers calls one after the other.

import load, { type InitOutput } from '../dist/core.js';
import address from '../dist/core_bg.wasm?url';
import { chunk } from './chunk.ts';
import { failedOf } from './error.ts';
import type { Call, Calls, Reply } from './protocol.ts';

interface Scope {
  onmessage: ((event: MessageEvent<Call>) => void) | null;
  postMessage(reply: Reply, transfer?: Transferable[]): void;
}

const scope = globalThis as unknown as Scope;
let loading: Promise<InitOutput> | undefined;

/** Loads the module; a browser that lacks what it needs says so by an error of its own. */
async function loaded(): Promise<InitOutput> {
  try {
    loading ??= load({ module_or_path: address });
    return await loading;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const isUnable = typeof WebAssembly !== 'object' || error instanceof WebAssembly.CompileError;
    throw Object.assign(new Error(message), { code: isUnable ? 'unsupported' : 'read' });
  }
}

async function answer(call: Call): Promise<[Calls[Call['name']]['answer'], Transferable[]]> {
  const { memory } = await loaded();
  switch (call.name) {
    case 'chunk': {
      const list = await chunk(call.ask, (done) => scope.postMessage({ kind: 'progress', done }));
      return [list, [list.lengths.buffer, list.ids.buffer]];
    }
    case 'end':
      return [memory.buffer.byteLength, []];
  }
}

scope.onmessage = ({ data }) => {
  answer(data).then(
    ([answer, transfer]) => scope.postMessage({ kind: 'answer', answer }, transfer),
    (error: unknown) => scope.postMessage({ kind: 'failed', failed: failedOf(error) }),
  );
};
