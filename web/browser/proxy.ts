// Stands between a browser and a server, and changes what the server answers, as one does that lies.

import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { Listening } from './listening.ts';

/** What is answered instead; nothing where the answer is left as it is. */
export type Lie = (
  address: URL,
  ask: (address: string) => Promise<Buffer>,
) => Promise<Buffer> | null;

export class LyingProxy extends Listening {
  #lie: Lie = () => null;

  constructor(readonly target: string) {
    super();
  }

  protected override answer(asked: IncomingMessage, answer: ServerResponse): void {
    const address = new URL(asked.url ?? '/', this.target);
    const ask = async (path: string) => {
      const authorization = asked.headers.authorization ?? '';
      const found = await fetch(new URL(path, this.target), { headers: { authorization } });
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
  }

  /** From now on it lies like that; not at all where nothing is given. */
  lie(lie: Lie = () => null): void {
    this.#lie = lie;
  }
}
