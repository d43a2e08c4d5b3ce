// How a new version can be sent: ours, those of the paper, and as a whole.

import {
  fetchChunkList,
  postDelta,
  type Node,
  type NodePath,
  type SynclineClient,
} from '@syncline/api';
import { WebRsync, type RecipeWorker } from '@syncline/baseline';
import type { Core, DeltaOptions, Sendable, Tuning } from '@syncline/core';

/** One exchange: what is known before, and what is to be sent. */
export interface Exchange {
  client: SynclineClient;
  core: Core;
  worker: RecipeWorker;
  workspace: string;
  path: NodePath;
  /** The version that is there. */
  etag: string;
  genesis: Uint8Array;
  /** The chunk list of what is there. */
  list: Uint8Array;
  /** What a client has kept that sent or received what is there. */
  kept: Uint8Array;
  /** What is there, if it is so short that a client keeps it, too. */
  old: Blob | undefined;
  file: Blob;
  signal: AbortSignal;
}

/** The server did not take what a method made. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken';
}

type Answer = { node: Node } | { message: Uint8Array<ArrayBuffer> };

function post(
  { client, workspace, path, etag, signal }: Exchange,
  body: Sendable,
): Promise<Answer> {
  return postDelta(client, workspace, path, body, { condition: { ifMatch: etag }, signal });
}

/** Posts what has to be answered by a message. */
async function ask(exchange: Exchange, body: Sendable): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await post(exchange, body);
  if (!('message' in answer)) throw new NotTaken('the server asks for nothing');
  return answer.message;
}

async function whole(exchange: Exchange): Promise<void> {
  const { client, workspace, path, file, etag, signal } = exchange;
  await client.putFile(workspace, path, file, { condition: { ifMatch: etag }, signal });
}

/** What a client has that sends by our method. */
type Known = Pick<DeltaOptions, 'base' | 'isKept' | 'old'>;

async function ours(exchange: Exchange, known: Known): Promise<void> {
  const { client, core, genesis, workspace, path, file, signal } = exchange;
  const delta = await core.delta(file, { genesis, ...known, signal });
  try {
    await delta.askAll(
      (question) => ask(exchange, question),
      () => fetchChunkList(client, workspace, path, signal),
    );
    const { body } = await delta.messages();
    let answer = await post(exchange, body);
    if ('message' in answer) {
      const { body: wanted } = await delta.wanted(answer.message);
      answer = await post(exchange, new Blob([body, wanted]));
    }
    if ('message' in answer) throw new NotTaken('the server wants chunks again');
  } finally {
    void delta.end();
  }
}

async function blocks(exchange: Exchange, tuning: Tuning, isReversed: boolean): Promise<void> {
  const { core, genesis, file, signal } = exchange;
  const delta = await core.blockDelta(file, { genesis, tuning, isReversed, signal });
  try {
    const { body } = await delta.reply(await ask(exchange, delta.opening));
    const answer = await post(exchange, body);
    if ('node' in answer || (await delta.takeAnswer(answer.message))) return;
  } finally {
    void delta.end();
  }
  // Two blocks had one light fingerprint.
  await blocks(exchange, 'careful', isReversed);
}

async function baseline(exchange: Exchange, isOnPage: boolean): Promise<void> {
  const { genesis, file, worker } = exchange;
  const delta = new WebRsync({ genesis });
  const sums = await ask(exchange, delta.opening);
  const { body } = isOnPage
    ? delta.recipe(sums, new Uint8Array(await file.arrayBuffer()))
    : await worker.recipe({ genesis, session: delta.session, sums, file });
  const answer = await post(exchange, body);
  if ('message' in answer) throw new NotTaken('the server put together something else');
}

/** All methods, in the order in which they are run. */
export const METHODS = {
  oursKept: (exchange: Exchange) =>
    ours(exchange, { base: exchange.kept, isKept: true, old: exchange.old }),
  oursSketch: (exchange: Exchange) => ours(exchange, { base: exchange.kept, isKept: true }),
  oursList: (exchange: Exchange) => ours(exchange, { base: exchange.list }),
  oursNothing: (exchange: Exchange) => ours(exchange, { base: null }),
  webR2syncPlus: (exchange: Exchange) => blocks(exchange, 'plus', true),
  webR2sync: (exchange: Exchange) => blocks(exchange, 'classic', true),
  webRsyncPlus: (exchange: Exchange) => blocks(exchange, 'plus', false),
  webRsync: (exchange: Exchange) => blocks(exchange, 'classic', false),
  scriptWorker: (exchange: Exchange) => baseline(exchange, false),
  scriptPage: (exchange: Exchange) => baseline(exchange, true),
  whole,
};

export type MethodName = keyof typeof METHODS;

export const METHOD_NAMES = Object.keys(METHODS) as MethodName[];
