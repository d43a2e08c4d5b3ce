// What is read of a sealed workspace, and put into it: all of it means nothing without the keys, which no server has.

import { bytesInto, bytesOf } from './bytes.ts';
import type { SynclineClient } from './client.ts';
import { bytesOfHex, hexOf } from './hex.ts';
import { ProblemError } from './problem.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** How keys of the objects begin that hold locked keys, the generation in 20 digits behind it. */
const KEYS = 'keys/';
const GENERATION_DIGITS = 20;

/** Returns entries of the log after one, as a server frame; at least one, where there is one. */
export async function fetchEntries(
  client: SynclineClient,
  workspace: string,
  options: { since: number; lengthMax?: number | undefined; signal?: AbortSignal | undefined },
): Promise<Bytes> {
  const { since, lengthMax, signal } = options;
  const response = await client.ask('GET /workspaces/{workspace}/log', {
    params: { workspace },
    query: { since, length_max: lengthMax },
    signal,
  });
  return bytesOf(response, signal);
}

/** Returns bytes of a pack, from the first to before the second place, in `memory` if it can; none where it is gone. */
export async function fetchPackPart(
  client: SynclineClient,
  workspace: string,
  pack: string,
  [start, end]: [number, number],
  { signal, memory }: { signal?: AbortSignal | undefined; memory?: Bytes | undefined } = {},
): Promise<Bytes> {
  try {
    const response = await client.ask('GET /workspaces/{workspace}/packs/{pack}', {
      params: { workspace, pack },
      headers: { range: `bytes=${start}-${end - 1}` },
      signal,
    });
    return await (memory ? bytesInto(response, memory, signal) : bytesOf(response, signal));
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 404) return new Uint8Array();
    throw error;
  }
}

/** Returns the locked keys of a workspace of one's own, the newest first. */
export async function* fetchLockedKeys(
  client: SynclineClient,
  workspace: string,
): AsyncGenerator<{ generation: number; bytes: Bytes }> {
  const params = { workspace };
  const found = await client.call('GET /workspaces/{workspace}/objects', {
    params,
    query: { prefix: KEYS },
  });
  for (const { key } of found.toSorted((a, b) => (a.key < b.key ? 1 : -1))) {
    const response = await client.ask('GET /workspaces/{workspace}/objects/{key}', {
      params: { workspace, key },
    });
    const bytes = await bytesOf(response, undefined);
    yield { generation: Number(key.slice(KEYS.length)), bytes };
  }
}

/** Makes the sealed workspace of an encoded genesis; asking again changes nothing. */
export async function createSealed(client: SynclineClient, genesis: Bytes): Promise<void> {
  await client.call('POST /workspaces', { body: new Blob([genesis]) });
}

/** A workspace has locked keys already, and other ones. */
export class OtherKeys extends Error {
  override readonly name = 'OtherKeys';

  constructor() {
    super('other keys are there');
  }
}

/** Puts the locked keys of a workspace of one's own; putting the same ones again changes nothing. Throws [OtherKeys]. */
export async function putLockedKeys(
  client: SynclineClient,
  workspace: string,
  { generation, bytes }: { generation: number; bytes: Bytes },
): Promise<void> {
  const key = `${KEYS}${String(generation).padStart(GENERATION_DIGITS, '0')}`;
  if (await putAbsent(client, workspace, [key, bytes])) return;
  for await (const kept of fetchLockedKeys(client, workspace)) {
    if (kept.generation === generation && hexOf(kept.bytes) === hexOf(bytes)) return;
  }
  throw new OtherKeys();
}

/** Who an account is to others in encrypted workspaces. */
export interface IdentityBytes {
  public: Bytes;
  /** What the passphrase of the identity opens. */
  locked: Bytes;
}

/** Asks for what there may be or not. */
async function found<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 404) return null;
    throw error;
  }
}

/** Returns the identity of this account, if a device of it has made one. */
export async function fetchIdentity(client: SynclineClient): Promise<IdentityBytes | null> {
  const line = await found(client.call('GET /identity'));
  return line && { public: bytesOfHex(line.public), locked: bytesOfHex(line.locked ?? '') };
}

/** Returns the keys of a workspace that its owner has sealed to an account, if there are any. */
export async function fetchEnvelope(
  client: SynclineClient,
  workspace: string,
  user: string,
): Promise<Bytes | null> {
  const key = `envelopes/${hexOf(new TextEncoder().encode(user))}`;
  const asked = client.ask('GET /workspaces/{workspace}/objects/{key}', {
    params: { workspace, key },
  });
  const response = await found(asked);
  return response && bytesOf(response, undefined);
}

/** Stores a pack, whose id is the hash of its bytes. */
export async function storePack(
  client: SynclineClient,
  workspace: string,
  pack: string,
  bytes: Bytes,
  signal?: AbortSignal,
): Promise<void> {
  const params = { workspace, pack };
  const body = new Blob([bytes]);
  await client.ask('PUT /workspaces/{workspace}/packs/{pack}', { params, body, signal });
}

/** Puts an encoded commit into the log; once, however often it is sent. */
export async function sendCommit(
  client: SynclineClient,
  workspace: string,
  message: Bytes,
): Promise<void> {
  const body = new Blob([message]);
  await client.ask('POST /workspaces/{workspace}/log', { params: { workspace }, body });
}

const boxOf = (name: string, part: string): string => `pairing/${name}/${part}`;

/** Returns a box of a pairing, if it is there. */
export async function fetchPairingBox(
  client: SynclineClient,
  workspace: string,
  [name, part]: [string, string],
  signal?: AbortSignal,
): Promise<Bytes | null> {
  const params = { workspace, key: boxOf(name, part) };
  const asked = client.ask('GET /workspaces/{workspace}/objects/{key}', { params, signal });
  const response = await found(asked);
  return response && bytesOf(response, signal);
}

/** Puts an object where there is none; says whether there was none. */
async function putAbsent(
  client: SynclineClient,
  workspace: string,
  [key, bytes]: [string, Bytes],
  signal?: AbortSignal,
): Promise<boolean> {
  const params = { workspace, key };
  const headers = { 'if-none-match': '*' };
  const body = new Blob([bytes]);
  try {
    await client.ask('PUT /workspaces/{workspace}/objects/{key}', {
      params,
      headers,
      body,
      signal,
    });
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 412) return false;
    throw error;
  }
}

/** Puts a box of a pairing where there is none; says whether there was none. */
export function putPairingBox(
  client: SynclineClient,
  workspace: string,
  [name, part, bytes]: [string, string, Bytes],
  signal?: AbortSignal,
): Promise<boolean> {
  return putAbsent(client, workspace, [boxOf(name, part), bytes], signal);
}

/** Removes a box of a pairing if it is there, also while the page goes away. */
export async function removePairingBox(
  client: SynclineClient,
  workspace: string,
  [name, part]: [string, string],
): Promise<void> {
  const params = { workspace, key: boxOf(name, part) };
  await client.ask('DELETE /workspaces/{workspace}/objects/{key}', { params, isLast: true });
}
