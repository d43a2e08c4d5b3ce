// What a delta asks of a server: `docs/design/delta.md`, "Over HTTP".

import { bytesOf } from './bytes.ts';
import { headersOf, timeOf, type Condition, type SynclineClient } from './client.ts';
import type { NodePath } from './path.ts';
import type { Node } from './schema.ts';

type Bytes = Uint8Array<ArrayBuffer>;

const TYPE = 'application/octet-stream';

/** Returns the encoded genesis of a workspace: what its content is cut and named by. It never changes. */
export async function fetchGenesis(
  client: SynclineClient,
  workspace: string,
  signal?: AbortSignal,
): Promise<Bytes> {
  const params = { workspace };
  const name = 'GET /workspaces/{workspace}/genesis';
  return bytesOf(await client.ask(name, { params, signal }), signal);
}

/** Returns the chunk list of the file at a path, against which a delta is made. */
export async function fetchChunkList(
  client: SynclineClient,
  workspace: string,
  path: NodePath,
  signal?: AbortSignal,
): Promise<Bytes> {
  const params = { workspace, path };
  const name = 'GET /workspaces/{workspace}/chunks/{path}';
  return bytesOf(await client.ask(name, { params, signal }), signal);
}

/** What comes of a delta: the new version, or a message where there is none yet. */
export type DeltaAnswer = { node: Node } | { message: Bytes };

export interface DeltaPut {
  condition?: Condition;
  modifiedMs?: number;
  signal?: AbortSignal;
}

/** Posts messages of a delta. */
export async function postDelta(
  client: SynclineClient,
  workspace: string,
  path: NodePath,
  body: Blob | Bytes,
  { condition, modifiedMs, signal }: DeltaPut = {},
): Promise<DeltaAnswer> {
  const response = await client.ask('POST /workspaces/{workspace}/delta/{path}', {
    params: { workspace, path },
    headers: { ...headersOf(condition), ...timeOf(modifiedMs), 'content-type': TYPE },
    body,
    signal,
  });
  return answerOf(response, signal);
}

/** Has the server take what has come as an upload as messages of a delta. */
export async function commitDelta(
  client: SynclineClient,
  workspace: string,
  upload: string,
  { condition, modifiedMs, signal }: DeltaPut = {},
): Promise<DeltaAnswer> {
  const response = await client.ask('POST /workspaces/{workspace}/uploads/{upload}/delta', {
    params: { workspace, upload },
    headers: { ...headersOf(condition), ...timeOf(modifiedMs) },
    signal,
  });
  return answerOf(response, signal);
}

async function answerOf(response: Response, signal?: AbortSignal): Promise<DeltaAnswer> {
  const bytes = await bytesOf(response, signal);
  if (response.status === 202) return { message: bytes };
  return { node: JSON.parse(new TextDecoder().decode(bytes)) as Node };
}
