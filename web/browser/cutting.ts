// Stands between a browser and a server, and is cut as a network is: in the middle of a body, or before the answer.

import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { Listening } from './listening.ts';

/** Where it is cut, once. */
export interface Cut {
  /** A part of the address. */
  of: string;
  /** POST without it. */
  method?: 'PUT';
  /** How long its body is at least. */
  length: number;
  /** The server gets so many bytes of the body; without this all of it, and its answer is lost. */
  after?: number;
  /** What happens before the browser hears of it. */
  deed?: () => unknown;
}

export class CuttingProxy extends Listening {
  #cut: Cut | null = null;
  #isAway = false;
  /** How often it was cut. */
  cuts = 0;

  constructor(readonly target: string) {
    super();
  }

  protected override answer(asked: IncomingMessage, answer: ServerResponse): void {
    if (this.#isAway) return void asked.socket.destroy();
    const { method, headers } = asked;
    const cut = this.#cutOf(method, asked.url, Number(headers['content-length']));
    const forward = request(new URL(asked.url ?? '/', this.target), { method, headers });
    const end = async () => {
      this.cuts++;
      this.#isAway = true;
      forward.destroy();
      await cut?.deed?.();
      asked.socket.destroy();
    };
    forward.on('response', (given: IncomingMessage) => {
      if (cut) return void given.resume().on('end', () => void end());
      answer.writeHead(given.statusCode ?? 502, given.headers);
      given.pipe(answer);
    });
    forward.on('error', () => {
      if (!cut) answer.destroy();
    });
    answer.on('close', () => forward.destroy());
    if (cut?.after === undefined) return void asked.pipe(forward);
    let left = cut.after;
    asked.on('data', (bytes: Buffer) => {
      if (left === 0) return;
      const part = bytes.subarray(0, left);
      left -= part.length;
      const isLast = left === 0;
      forward.write(part, () => isLast && void end());
    });
  }

  /** Is cut at the next request that is one of those. From then on nothing gets through until it is mended: browsers try again by themselves. */
  cut(cut: Cut): void {
    this.#cut = cut;
  }

  mend(): void {
    this.#isAway = false;
  }

  #cutOf(method: string | undefined, address = '', length: number): Cut | null {
    const cut = this.#cut;
    if (!cut || method !== (cut.method ?? 'POST')) return null;
    if (!address.includes(cut.of) || !(length >= cut.length)) return null;
    this.#cut = null;
    return cut;
  }
}
