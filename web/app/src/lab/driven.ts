// What a program that drives a browser calls: the same runs as those of the form, without a click for each. It can do no more than who is
// signed in here.

import { runAll, type Row } from './bench.ts';
import { METHOD_NAMES, type MethodName } from './methods.ts';
import { bytesOf, edited, spliced, type Edit } from './sample.ts';

export interface Order extends Edit {
  workspace: string;
  /** Bytes of the old version. */
  length: number;
  methods: MethodName[];
  /** For how long the meter ticks before and after each method, in milliseconds. */
  calm: number;
}

/** Processor time that something has cost so far, in milliseconds. */
export interface Cost {
  client: number;
  server: number;
}

/** A row that can leave the page. */
export interface DrivenRow extends Omit<Row, 'failure'> {
  failure: string | null;
  /** What it cost the browser and the server; null where nobody counts. */
  cost: Cost | null;
}

declare global {
  interface Window {
    /** Runs each method of an order once, on a file of the disk where there is one, which is then never in memory as a whole. */
    synclineLab?: ((order: Order, file?: File | null) => Promise<DrivenRow[]>) | undefined;
    /** What the program that drives counts. */
    synclineCost?: () => Promise<Cost>;
  }
}

/** The old and the new version. */
function versionsOf(order: Order, file: File | null): { base: Blob; file: Blob } {
  if (file) return { base: file, file: spliced(file, order) };
  const old = bytesOf(order.seed, order.length);
  return { base: new Blob([old]), file: new Blob([edited(old, order)]) };
}

async function run(token: string | null, order: Order, file: File | null): Promise<DrivenRow[]> {
  const { workspace, calm, methods } = order;
  const plan = { workspace, ...versionsOf(order, file), runs: 1, methods, calm };
  const count = async () => (await window.synclineCost?.()) ?? null;
  const rows: DrivenRow[] = [];
  let cost: Cost | null = null;
  const hooks = {
    onBegin: () => undefined,
    onTick: () => undefined,
    onRow: ({ failure, ...row }: Row) => {
      rows.push({ ...row, failure: failure === undefined ? null : String(failure), cost });
    },
    around: async <T>(deed: () => Promise<T>): Promise<T> => {
      const before = await count();
      const found = await deed();
      const after = await count();
      cost = before &&
        after && { client: after.client - before.client, server: after.server - before.server };
      return found;
    },
  };
  await runAll(token, plan, hooks, new AbortController().signal);
  return rows;
}

/** Offers the lab to whoever drives this browser, until the function that is returned is called. */
export function offer(token: () => string | null): () => void {
  window.synclineLab = (order, file = null) => {
    const unknown = order.methods.find((method) => !METHOD_NAMES.includes(method));
    if (unknown !== undefined) return Promise.reject(new RangeError(`no method is '${unknown}'`));
    return run(token(), order, file);
  };
  return () => (window.synclineLab = undefined);
}
