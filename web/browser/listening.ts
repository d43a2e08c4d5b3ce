import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** A server of a test, on a port of its own. */
export abstract class Listening {
  readonly #server = createServer((asked, answer) => this.answer(asked, answer));

  protected abstract answer(asked: IncomingMessage, answer: ServerResponse): void;

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get url(): string {
    const address = this.#server.address();
    if (typeof address !== 'object' || !address) throw new Error('nobody listens');
    return `http://127.0.0.1:${address.port}`;
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
