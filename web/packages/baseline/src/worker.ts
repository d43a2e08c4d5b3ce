// WebRsync-parallel (paper, section 4): the same search in a worker, so that the page does not stand still.

import { BaselineError } from './error.ts';
import type { Ask, Reply } from './parallel.ts';
import { WebRsync } from './web-rsync.ts';

interface Scope {
  onmessage: ((event: MessageEvent<Ask>) => void) | null;
  postMessage(reply: Reply, transfer?: Transferable[]): void;
}

const scope = globalThis as unknown as Scope;

scope.onmessage = async ({ data: { genesis, session, sums, file } }) => {
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const made = new WebRsync({ genesis, session }).recipe(sums, bytes);
    scope.postMessage({ made }, [made.body.buffer]);
  } catch (error) {
    const code = error instanceof BaselineError ? error.code : null;
    scope.postMessage({ failed: String(error), code });
  }
};
