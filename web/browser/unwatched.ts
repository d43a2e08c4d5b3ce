// A browser that nobody watches while it works: whoever drives one lets it keep for him what comes over the network, up to 200 MB of it, and that
// would be counted as memory of the app.

import { spawn, type ChildProcess } from 'node:child_process';
import { chromium, type Browser, type LaunchOptions, type Page } from '@playwright/test';

export class UnwatchedBrowser {
  readonly #process: ChildProcess;
  readonly #address: string;
  #browser: Browser | undefined;

  private constructor(process: ChildProcess, address: string) {
    this.#process = process;
    this.#address = address;
  }

  /** Starts one with a profile on the disk, as people have one: others keep in memory whatever they are to store. */
  static async start(
    profile: string,
    { executablePath = '', args = [] }: LaunchOptions,
  ): Promise<UnwatchedBrowser> {
    const own = ['--headless', '--no-first-run', '--remote-debugging-port=0'];
    const words = [...own, `--user-data-dir=${profile}`, ...args, 'about:blank'];
    const started = spawn(executablePath, words, { stdio: ['ignore', 'ignore', 'pipe'] });
    return new UnwatchedBrowser(started, await addressOf(started));
  }

  /** Begins to drive it; returns its page. */
  async watch(): Promise<Page> {
    this.#browser ??= await chromium.connectOverCDP(this.#address);
    const page = this.#browser.contexts()[0]?.pages()[0];
    if (!page) throw new Error('the browser has no page');
    return page;
  }

  /** Lets it work on alone. */
  async leave(): Promise<void> {
    await this.#browser?.close();
    this.#browser = undefined;
  }

  async end(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    await this.watch();
    const session = await this.#browser?.newBrowserCDPSession();
    await session?.send('Browser.close').catch(() => undefined);
    await ended;
  }
}

/** Where it can be driven from, which it says itself. What else it says is read and forgotten: it must not stand still. */
function addressOf({ stderr }: ChildProcess): Promise<string> {
  let said = '';
  return new Promise((resolve, reject) => {
    stderr?.on('data', (piece: Buffer) => {
      said = `${said}${piece.toString()}`.slice(-10_000);
      const [, address] = /DevTools listening on (ws:\S+)/.exec(said) ?? [];
      if (address) resolve(address);
    });
    stderr?.on('end', () => reject(new Error(`the browser has ended: ${said}`)));
  });
}
