// Stands between a browser and a server, and changes what the server answers, as one does that lies.

import { createServer, request, type IncomingMessage, type Server } from 'node:http';

/** What is answered instead; nothing where the answer is left as it is. */
export type Lie = (
  address: URL,
  ask: (address: string) => Promise<Buffer>,
) => Promise<Buffer> | null;

export class LyingProxy {
  readonly #server: Server;
  #lie: Lie = () => null;

  private constructor(readonly target: string) {
    this.#server = createServer((asked, answer) => {
      const address = new URL(asked.url ?? '/', target);
      const ask = async (path: string) => {
        const authorization = asked.headers.authorization ?? '';
        const found = await fetch(new URL(path, target), { headers: { authorization } });
        if (!found.ok) throw new Error(`${path}: ${found.status}`);
        return Buffer.from(await found.arrayBuffer());
      };
      const instead = asked.method === 'GET' ? this.#lie(address, ask) : null;
      const forward = request(
        address,
        { method: asked.method, headers: asked.headers },
        (given: IncomingMessage) => {
          const headers = { ...given.headers };
          if (!instead) {
            answer.writeHead(given.statusCode ?? 502, headers);
            given.pipe(answer);
            return;
          }
          given.resume();
          delete headers['content-encoding'];
          delete headers['transfer-encoding'];
          const send = (body: Buffer) => {
            answer.writeHead(200, { ...headers, 'content-length': body.length });
            answer.end(body);
          };
          void instead.then(send, (error: unknown) => answer.destroy(error as Error));
        },
      );
      forward.on('error', () => answer.destroy());
      answer.on('close', () => forward.destroy());
      asked.pipe(forward);
    });
  }

  static async start(target: string): Promise<LyingProxy> {
    const proxy = new LyingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (typeof address !== 'object' || !address) throw new Error('the proxy does not listen');
    return `http://127.0.0.1:${address.port}`;
  }

  /** From now on it lies like that; not at all where nothing is given. */
  lie(lie: Lie = () => null): void {
    this.#lie = lie;
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
