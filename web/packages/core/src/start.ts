// Starts workers. A page under Trusted Types may start none by a mere address, so one policy lets through the addresses of ours and
// no other.

import baseline from '@syncline/baseline/worker?worker&url';
import type { PoolWorker } from './pool.ts';
import address from './worker.ts?worker&url';

interface Policy {
  createScriptURL(url: string): string;
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
}

let policy: Policy | undefined;

function policyOf(): Policy {
  const rules = {
    createScriptURL: (url: string) => {
      if (url !== address && url !== baseline) throw new TypeError('only our workers are started');
      return url;
    },
  };
  // Browsers without Trusted Types ask nobody.
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
  return trustedTypes?.createPolicy('syncline-worker', rules) ?? rules;
}

function start(address: string, name: string): Worker {
  policy ??= policyOf();
  return new Worker(policy.createScriptURL(address), { type: 'module', name });
}

export function startWorker(): PoolWorker {
  return start(address, 'syncline core');
}

/** Starts the worker of the plain JavaScript that the core is compared with. */
export function startBaseline(): Worker {
  return start(baseline, 'syncline baseline');
}
