// Makes an account by an invitation. The server is not told the password, here as elsewhere.

import { NoConnection, type Operations, type SynclineClient } from '@syncline/api';
import { fromBase64, proveLogin, toBase64, withCore } from '../sign-in/prove.ts';
import { codeOf } from '../words/problem.ts';

export type Session = Operations['POST /join/finish']['answer'];
export type Invitation = Operations['POST /join']['answer'];

export interface Joining {
  secret: string;
  user: string;
  password: string;
  device_name: string;
  /** Whether the answer of an earlier attempt was lost, so that the account may be there. */
  mayBeThere: boolean;
}

/** The answer was lost: whether the account is there, the next attempt finds out. */
export class AnswerLost extends Error {
  override name = 'AnswerLost';
}

export function look(client: SynclineClient, secret: string): Promise<Invitation> {
  return client.call('POST /join', { body: { secret } });
}

/** Signs in to what an earlier attempt has made; nothing where it has made nothing. */
async function signIn(client: SynclineClient, joining: Joining): Promise<Session | null> {
  const { user, password, device_name } = joining;
  try {
    return await proveLogin(client, { user, password, device_name });
  } catch (error) {
    if (error instanceof NoConnection) throw new AnswerLost('the server is away', { cause: error });
    // Nobody of that name, or somebody else.
    if (codeOf(error) === 'wrong_password') return null;
    throw error;
  }
}

/** Makes the account, and a device of it for this browser. */
export async function join(client: SynclineClient, joining: Joining): Promise<Session> {
  const { secret, user, password, device_name, mayBeThere } = joining;
  const found = mayBeThere ? await signIn(client, joining) : null;
  if (found !== null) return found;
  const message = await withCore((core) =>
    core.newPassword(password, async (first) => {
      const body = { secret, user, message: toBase64(first) };
      return fromBase64((await client.call('POST /join/begin', { body })).message);
    }),
  );
  try {
    const body = { secret, user, message: toBase64(message), device_name };
    return await client.call('POST /join/finish', { body });
  } catch (error) {
    if (!(error instanceof NoConnection)) throw error;
    const made = await signIn(client, joining);
    if (made !== null) return made;
    throw error;
  }
}
