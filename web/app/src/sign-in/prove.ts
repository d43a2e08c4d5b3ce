// Proves a password to the server, which is not told it; nor is it told the one that takes its place.

import { NoConnection, ProblemError, type Operations, type SynclineClient } from '@syncline/api';
import type { Core, Proof } from '@syncline/core';
import { loadCore } from '../core.ts';
import { codeOf } from '../words/problem.ts';

type Login = Operations['POST /login']['body'];
type Session = Operations['POST /login']['answer'];
type Change = Operations['POST /account/password']['body'];
type Changed = Operations['POST /account/password']['answer'];

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Lets the core work on a password. What it is made of comes from the server, too: without that there is no connection. */
export async function withCore<Answer>(work: (core: Core) => Promise<Answer>): Promise<Answer> {
  const core = await loadCore().catch((error: unknown) => {
    throw new NoConnection(error);
  });
  try {
    return await work(core);
  } catch (error) {
    throw codeOf(error) === 'read' ? new NoConnection(error) : error;
  }
}

function prove(
  password: string,
  newPassword: string | null,
  ask: (first: Proof) => Promise<Proof>,
): Promise<Proof> {
  return withCore((core) => core.prove(password, newPassword, ask));
}

/** Signs in. A password that the server has kept since before it could be proved is sent, which the server wants once. */
export async function proveLogin(client: SynclineClient, login: Login): Promise<Session> {
  const { user, password, device_name, code } = login;
  try {
    let session = '';
    const proof = await prove(password, null, async ({ message }) => {
      const body = { user, message: toBase64(message) };
      const begun = await client.call('POST /login/begin', { body });
      session = begun.session;
      return { message: fromBase64(begun.message), newMessage: null };
    });
    const body = { session, message: toBase64(proof.message), device_name, ...(code && { code }) };
    return await client.call('POST /login/finish', { body });
  } catch (error) {
    if (error instanceof ProblemError && error.code === 'conflict') {
      return client.call('POST /login', { body: login });
    }
    throw error;
  }
}

/** Changes the password of the own account. */
export async function proveChange(client: SynclineClient, change: Change): Promise<Changed> {
  const { password, new_password, sign_out_others } = change;
  let session = '';
  const proof = await prove(password, new_password, async ({ message, newMessage }) => {
    const body = {
      message: toBase64(message),
      new_message: toBase64(newMessage ?? new Uint8Array()),
    };
    const begun = await client.call('POST /account/password/begin', { body });
    session = begun.session;
    return { message: fromBase64(begun.message), newMessage: fromBase64(begun.new_message) };
  });
  const body = {
    session,
    message: toBase64(proof.message),
    new_message: toBase64(proof.newMessage ?? new Uint8Array()),
    ...(sign_out_others !== undefined && { sign_out_others }),
  };
  return client.call('POST /account/password/finish', { body });
}
