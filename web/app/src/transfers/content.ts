// What a content is: the list of its chunks, as the core cuts and names them in a worker. A file of any length is gone through once.

import { hexOf, NoConnection, type NodePath, type SynclineClient } from '@syncline/api';
import type { Core } from '@syncline/core';

/** The chunks of a version, as the server tells them. */
export interface ChunkTable {
  average: number;
  lengths: number[];
  /** The ids one after the other, 32 bytes each. */
  ids: Uint8Array;
}

const ID_LENGTH = 32;
const KEY_LENGTH = 32;
/** How long chunks of a digest are on average. It is compared with digests of this browser alone. */
const DIGEST_AVERAGE = 65_536;

/** Reads numbers and bytes as `docs/design/commit-log.md` writes them. */
class Decoder {
  #at = 0;

  constructor(readonly bytes: Uint8Array) {}

  raw(length: number): Uint8Array {
    const part = this.bytes.subarray(this.#at, this.#at + length);
    if (part.length < length) throw new RangeError('a chunk list is cut off');
    this.#at += length;
    return part;
  }

  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const [byte = 0] = this.raw(1);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      if (factor > 2 ** 42) throw new RangeError('a number of a chunk list is too large');
    }
  }
}

/** Reads the answer to `GET /chunks` (`docs/design/delta.md`, "Over HTTP"). */
export function decodeTable(bytes: Uint8Array): ChunkTable {
  const decoder = new Decoder(bytes);
  const [magic, version] = decoder.raw(2);
  if (magic !== 0x56 || version !== 1) throw new RangeError('this is no chunk list');
  const average = decoder.number();
  const count = decoder.number();
  if (count > bytes.length) throw new RangeError('a chunk list is cut off');
  const ids = new Uint8Array(count * ID_LENGTH);
  const lengths: number[] = [];
  for (let at = 0; at < count; at++) {
    ids.set(decoder.raw(ID_LENGTH), at * ID_LENGTH);
    lengths.push(decoder.number());
  }
  return { average, lengths, ids };
}

/** Asks for the chunks of the version at a path; nothing comes back where that is another one than `etag` names by now. */
export async function fetchTable(
  client: SynclineClient,
  workspace: string,
  path: NodePath,
  etag: string,
  signal: AbortSignal,
): Promise<ChunkTable | null> {
  const params = { workspace, path };
  const name = 'GET /workspaces/{workspace}/chunks/{path}';
  const response = await client.ask(name, { params, signal });
  if (response.headers.get('etag') !== etag) return null;
  try {
    return decodeTable(new Uint8Array(await response.arrayBuffer()));
  } catch (error) {
    if (signal.aborted || error instanceof RangeError) throw error;
    throw new NoConnection(error);
  }
}

/** The secret by which a plain workspace cuts and names: the last field of its genesis. */
export function secretOf(genesis: Uint8Array): Uint8Array {
  if (genesis[0] !== 0x47 || genesis.length < KEY_LENGTH + 2) throw new RangeError('no genesis');
  return genesis.slice(-KEY_LENGTH);
}

/** Whether a file has the content of a version. */
export async function hasContent(
  core: Pick<Core, 'chunk'>,
  file: Blob,
  table: ChunkTable,
  secret: Uint8Array,
  signal: AbortSignal,
): Promise<boolean> {
  const size = table.lengths.reduce((sum, length) => sum + length, 0);
  if (size !== file.size) return false;
  if (size === 0) return true;
  const { ids } = await core.chunk(file, { secret, average: table.average, signal });
  return ids.length === table.ids.length && ids.every((byte, at) => byte === table.ids[at]);
}

/** Names a content: the id of the list of its ids, and so on until there is one. */
export async function digestOf(
  core: Pick<Core, 'chunk'>,
  file: Blob,
  signal: AbortSignal,
): Promise<string> {
  if (file.size === 0) return 'empty';
  const secret = new Uint8Array(KEY_LENGTH);
  const { ids } = await core.chunk(file, { secret, average: DIGEST_AVERAGE, signal });
  if (ids.length > ID_LENGTH) return digestOf(core, new Blob([ids]), signal);
  return hexOf(ids);
}
