// How a sealed workspace is opened: one's own with what locks its keys, somebody else's with the identity of this account.

import { CoreError, type CoreErrorCode } from './error.ts';
import type { Calls } from './protocol.ts';
import type { SealedDevice, SealedSource, SeenHead } from './sealed.ts';

const SEED_LENGTH = 32;

/** Random bytes for one session in a worker. */
export const newSeed = (): Uint8Array => crypto.getRandomValues(new Uint8Array(SEED_LENGTH));

type Ask = Calls['sealedOpen']['ask'];
type Answer = Calls['sealedOpen']['answer'];

interface Opening {
  id: string;
  secret: string;
  device: SealedDevice;
  source: SealedSource;
  seen: SeenHead | undefined;
  call: (ask: Ask) => Promise<Answer>;
}

export function coreError(code: CoreErrorCode, message: string): CoreError {
  return new CoreError({ code, message, isRetryable: false });
}

/** Unlocks a workspace; throws a [CoreError]. */
export async function openSealed(opening: Opening): Promise<Answer> {
  const { id, secret, device, source, seen, call } = opening;
  const genesis = await source.genesis();
  const ask = (kept: Ask['kept']) => {
    const seed = newSeed();
    const who = { secret, device: device.id, deviceName: device.name };
    return call({ id, genesis, kept, seed, ...who });
  };
  if (!source.membership) return openOwn(source, ask);
  const { membership } = source;
  const [identity, envelope] = [await membership.identity(), await membership.envelope()];
  if (!identity) throw coreError('no_identity', 'this account has no identity');
  if (!envelope) throw coreError('no_envelope', 'there are no keys for this account');
  const opened = await ask({ identity, envelope, seen: seen?.keys() ?? 0 });
  seen?.setKeys(opened.generation);
  return opened;
}

/** Opens something by the locked keys of a workspace of one's own. */
export async function openOwn<T>(
  source: SealedSource,
  ask: (kept: { generation: number; keys: Uint8Array }) => Promise<T>,
): Promise<T> {
  let failure: unknown = coreError('missing', 'the locked keys are not stored');
  for await (const { generation, bytes: keys } of source.lockedKeys()) {
    try {
      return await ask({ generation, keys });
    } catch (error) {
      failure = error;
      // As a device does: what cannot be read as locked keys is passed over, and no older ones are tried by their secret.
      if (!(error instanceof CoreError) || error.code !== 'tampered') throw error;
    }
  }
  throw failure;
}
