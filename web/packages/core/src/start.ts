// Starts workers. A page under Trusted Types may start none by a mere address, so one policy lets through the address of ours and
// no other.

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
      if (url !== address) throw new TypeError('only the worker of the core is started');
      return url;
    },
  };
  // Browsers without Trusted Types ask nobody.
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
  return trustedTypes?.createPolicy('syncline-worker', rules) ?? rules;
}

export function startWorker(): PoolWorker {
  policy ??= policyOf();
  return new Worker(policy.createScriptURL(address), { type: 'module', name: 'syncline core' });
}
