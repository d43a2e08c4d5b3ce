// The program at a terminal, where it asks a person.

import { spawn, type ChildProcess } from 'node:child_process';

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

export class Terminal {
  readonly #process: ChildProcess;
  readonly #end: Promise<number | null>;
  /** All that it has said. */
  said = '';

  constructor(program: string, words: string[], env: NodeJS.ProcessEnv) {
    const line = [program, ...words].map(quoted).join(' ');
    // `script` is in every Debian; it gives a program a terminal.
    const options = ['--quiet', '--return', '--flush', '--command', line, '/dev/null'];
    this.#process = spawn('script', options, { env: { TERM: 'dumb', SHELL: '/bin/sh', ...env } });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', (bytes: Buffer) => (this.said += bytes.toString()));
    }
    this.#end = new Promise((resolve) => this.#process.once('exit', resolve));
  }

  /** Waits until it has said something; returns what matched. */
  async waitFor(pattern: RegExp): Promise<string> {
    for (let attempt = 0; attempt < 600; attempt++) {
      const found = pattern.exec(this.said);
      if (found) return found[1] ?? found[0];
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the program has not said ${pattern}: ${this.said}`);
  }

  type(text: string): void {
    this.#process.stdin?.write(text);
  }

  /** Presses Control and C. */
  interrupt(): void {
    this.type('\u0003');
  }

  /** Waits for its end; returns how it ended. */
  ended(): Promise<number | null> {
    return this.#end;
  }
}
