// Stands between a browser and a server, and is cut as a network is: in the middle of a body, or before the answer.

import { createServer, request, type IncomingMessage, type Server } from 'node:http';

/** Where it is cut, once. */
export interface Cut {
  /** A part of the address of a POST. */
  of: string;
  /** How long its body is at least. */
  length: number;
  /** The server gets so many bytes of the body; without this all of it, and its answer is lost. */
  after?: number;
  /** What happens before the browser hears of it. */
  deed?: () => unknown;
}

export class CuttingProxy {
  readonly #server: Server;
  #cut: Cut | null = null;
  #isAway = false;
  /** How often it was cut. */
  cuts = 0;

  private constructor(target: string) {
    this.#server = createServer((asked, answer) => {
      if (this.#isAway) return void asked.socket.destroy();
      const { method, headers } = asked;
      const cut = this.#cutOf(method, asked.url, Number(headers['content-length']));
      const forward = request(new URL(asked.url ?? '/', target), { method, headers });
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
    });
  }

  static async start(target: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (typeof address !== 'object' || !address) throw new Error('the proxy does not listen');
    return `http://127.0.0.1:${address.port}`;
  }

  /** Is cut at the next request that is one of those. From then on nothing gets through until it is mended: browsers try again by themselves. */
  cut(cut: Cut): void {
    this.#cut = cut;
  }

  mend(): void {
    this.#isAway = false;
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #cutOf(method: string | undefined, address = '', length: number): Cut | null {
    const cut = this.#cut;
    if (!cut || method !== 'POST' || !address.includes(cut.of) || !(length >= cut.length))
      return null;
    this.#cut = null;
    return cut;
  }
}
