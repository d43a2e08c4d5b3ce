// Starts the workers of the core, and of what it is compared with.

import baseline from '@syncline/baseline/worker?worker&url';
import type { PoolWorker } from './pool.ts';
import { trustedStarter } from './trusted.ts';
import address from './worker.ts?worker&url';

const start = trustedStarter('syncline-worker', [address, baseline]);

export function startWorker(): PoolWorker {
  return start(address, 'syncline core');
}

/** Starts the worker of the plain JavaScript that the core is compared with. */
export function startBaseline(): Worker {
  return start(baseline, 'syncline baseline');
}
