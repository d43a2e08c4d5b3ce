import { BaselineError, type BaselineErrorCode } from './error.ts';
import type { RecipeBody } from './web-rsync.ts';

export interface Ask {
  genesis: Uint8Array;
  session: Uint8Array;
  sums: Uint8Array;
  file: Blob;
}

export type Reply = { made: RecipeBody } | { failed: string; code: BaselineErrorCode | null };

/** Searches in a worker. */
export class RecipeWorker {
  readonly #worker: Worker;

  /** Takes a worker that runs `worker.ts`, and ends it with [RecipeWorker.end]. */
  constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** As [WebRsync.recipe], in the session of that exchange. One at a time. */
  recipe(ask: Ask): Promise<RecipeBody> {
    return new Promise((resolve, reject) => {
      this.#worker.onerror = ({ message }) => reject(new Error(message));
      this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
        if ('made' in data) resolve(data.made);
        else reject(data.code ? new BaselineError(data.code, data.failed) : new Error(data.failed));
      };
      this.#worker.postMessage(ask);
    });
  }

  end(): void {
    this.#worker.terminate();
  }
}
