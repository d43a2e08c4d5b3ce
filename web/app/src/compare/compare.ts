// Has two texts compared by a worker, which ends with it.

import { trustedStarter } from '@syncline/core/trusted';
import type { Row } from './lines.ts';
import address from './worker.ts?worker&url';

const start = trustedStarter('syncline-compare', [address]);

/** Compares two texts; nothing where they differ too much for that to be told in time. Who aborts is never answered. */
export function compareInWorker(
  before: string,
  after: string,
  signal: AbortSignal,
): Promise<Row[] | null> {
  const worker = start(address, 'syncline compare');
  const end = () => worker.terminate();
  signal.addEventListener('abort', end);
  const answer = new Promise<Row[] | null>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Row[] | null>) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage([before, after]);
  });
  return answer.finally(end);
}
