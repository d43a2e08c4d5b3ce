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

/** Posts messages of a delta. The answer is the new version, or a message where there is none yet. */
export async function postDelta(
  client: SynclineClient,
  workspace: string,
  path: NodePath,
  body: Blob | Bytes,
  options: { condition?: Condition; modifiedMs?: number; signal?: AbortSignal } = {},
): Promise<{ node: Node } | { message: Bytes }> {
  const { condition, modifiedMs, signal } = options;
  const response = await client.ask('POST /workspaces/{workspace}/delta/{path}', {
    params: { workspace, path },
    headers: { ...headersOf(condition), ...timeOf(modifiedMs), 'content-type': TYPE },
    body,
    signal,
  });
  const bytes = await bytesOf(response, signal);
  if (response.status === 202) return { message: bytes };
  return { node: JSON.parse(new TextDecoder().decode(bytes)) as Node };
}
