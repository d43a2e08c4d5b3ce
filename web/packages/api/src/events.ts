// Events of a workspace, read from a stream of texts by fetch: an EventSource could not show the token.

import { ProblemError } from './problem.ts';
import type { SynclineClient } from './client.ts';

/** A hint that the log has grown; one may be left out. */
export interface EntryEvent {
  seq: number;
  device_id: string | null;
  changes: number;
}

export interface Listening {
  onEvent: (event: EntryEvent) => void;
  /** Whether events are coming. */
  onState?: (isConnected: boolean) => void;
  /** Waits between two attempts; tests hand in another one. */
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
  random?: () => number;
}

const WAIT_MIN_MS = 1_000;
const WAIT_MAX_MS = 60_000;
/** The server says something every 20 seconds; a stream that is silent for longer is dead. */
const SILENCE_MAX_MS = 50_000;

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}

/** Cuts a stream of bytes into the data of its events; comments are empty texts. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const lines = block.split('\n').filter((line) => line.startsWith('data:'));
        yield lines.map((line) => line.slice(5).trimStart()).join('\n');
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/**
 * Listens to a workspace until the signal says stop. A stream that ends is asked for again, after 1 to 60 seconds. It returns early
 * only where asking again would not help: the right to the workspace is gone.
 */
export async function listen(
  client: SynclineClient,
  workspace: string,
  listening: Listening,
  signal: AbortSignal,
): Promise<void> {
  const wait = listening.wait ?? waitFor;
  const random = listening.random ?? Math.random;
  let delay = WAIT_MIN_MS;
  while (!signal.aborted) {
    try {
      await readOnce(client, workspace, listening, signal, () => (delay = WAIT_MIN_MS));
    } catch (error) {
      if (error instanceof ProblemError && !error.isPassing && error.problem.status < 500) return;
    }
    if (signal.aborted) return;
    listening.onState?.(false);
    await wait(delay * (0.75 + random() / 2), signal);
    delay = Math.min(delay * 2, WAIT_MAX_MS);
  }
}

async function readOnce(
  client: SynclineClient,
  workspace: string,
  listening: Listening,
  outer: AbortSignal,
  onConnected: () => void,
): Promise<void> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
  const signal = AbortSignal.any([outer, silence.signal]);
  try {
    const response = await client.ask('GET /workspaces/{workspace}/events', {
      params: { workspace },
      signal,
    });
    if (!response.body) return;
    onConnected();
    listening.onState?.(true);
    for await (const data of readEvents(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
      if (data !== '') listening.onEvent(JSON.parse(data) as EntryEvent);
    }
  } finally {
    clearTimeout(timer);
  }
}
