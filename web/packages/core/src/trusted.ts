// Starts workers on a page under Trusted Types, which may start none by a mere address.

interface Policy {
  createScriptURL(url: string): string;
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
}

/** Starts a worker at an address. */
export type Starter = (address: string, name: string) => Worker;

/** Returns what starts workers at these addresses and at no other, by a policy that `security-headers.json` has to name. */
export function trustedStarter(policyName: string, addresses: readonly string[]): Starter {
  let policy: Policy | undefined;
  const rules = {
    createScriptURL: (url: string) => {
      if (!addresses.includes(url)) throw new TypeError('only our workers are started');
      return url;
    },
  };
  return (address, name) => {
    // Browsers without Trusted Types ask nobody.
    const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
    policy ??= trustedTypes?.createPolicy(policyName, rules) ?? rules;
    return new Worker(policy.createScriptURL(address), { type: 'module', name });
  };
}
