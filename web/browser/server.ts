// A real server of Syncline in a temporary folder, with accounts and workspaces that devices made.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SynclineClient } from '@syncline/api';
import { Terminal } from './terminal.ts';

export const PASSWORD = 'correct horse battery staple';

/** Of the identities, by which people are let into encrypted workspaces. */
export const IDENTITY_SECRET = 'a secret of the identity';

/** How the program ends where both sides have changed something and both is kept. */
const CONFLICTS = 5;

function binary(): string {
  const path = process.env['SYNCLINE_BINARY'];
  if (!path) throw new Error('SYNCLINE_BINARY has to name the program `syncline`');
  return path;
}

async function freePort(): Promise<number> {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  if (typeof address !== 'object' || !address) throw new Error('no port is free');
  return address.port;
}

export class RealServer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  #process: ChildProcess | undefined;
  #port = 0;

  /** The process of the server. */
  get id(): number {
    return this.#process?.pid ?? 0;
  }

  /** Starts the server. */
  static async start(): Promise<RealServer> {
    const server = new RealServer();
    server.#port = await freePort();
    writeFileSync(server.#path('passphrase'), PASSWORD, { mode: 0o600 });
    writeFileSync(server.#path('identity'), IDENTITY_SECRET, { mode: 0o600 });
    await server.run();
    return server;
  }

  /** Where a browser finds the app, and other programs the API. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Runs the server, also again after `halt`. */
  async run(): Promise<void> {
    const options = ['serve', '--listen', `127.0.0.1:${this.#port}`, '--data', this.#path('data')];
    this.#process = spawn(binary(), options, { stdio: 'ignore', env: this.#environment('server') });
    for (let attempt = 0; attempt < 200; attempt++) {
      const answer = await fetch(`${this.url}/readyz`).catch(() => null);
      if (answer?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('the server did not start');
  }

  async halt(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (!running) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGKILL');
    await ended;
  }

  /** Copies all that the server has; `setBack` sets it back to that. */
  async backUp(): Promise<void> {
    await this.halt();
    cpSync(this.#path('data'), this.#path('backup'), { recursive: true });
    await this.run();
  }

  async setBack(): Promise<void> {
    await this.halt();
    rmSync(this.#path('data'), { recursive: true });
    cpSync(this.#path('backup'), this.#path('data'), { recursive: true });
    await this.run();
  }

  async end(): Promise<void> {
    await this.halt();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  addUser(name: string): void {
    this.#command('server', [
      'user',
      'add',
      name,
      '--password-stdin',
      '--data',
      this.#path('data'),
    ]);
  }

  /** Invites somebody; returns the address that they open. */
  invite(...flags: string[]): string {
    const words = ['user', 'invitation', 'add', this.url, '--data', this.#path('data'), '--json'];
    const said = this.#command('server', [...words, ...flags]);
    return (JSON.parse(said) as { url: string }).url;
  }

  /** Takes the newest invitation back. */
  uninvite(): void {
    const data = ['--data', this.#path('data')];
    const said = this.#command('server', ['user', 'invitation', 'ls', ...data, '--json']);
    const { invitations } = JSON.parse(said) as { invitations: { number: number }[] };
    const newest = invitations.at(-1)?.number ?? 0;
    this.#command('server', ['user', 'invitation', 'rm', String(newest), ...data]);
  }

  /** Returns the fingerprint of the app that the program carries, as it prints it. */
  fingerprintOfApp(): string {
    return this.#command('server', ['admin', 'web-app']).split('\n')[0] ?? '';
  }

  /** Limits what somebody may store, as in `5 MB`, or with `none` no longer. */
  limit(user: string, quota: string): void {
    this.#command('server', ['user', 'quota', user, quota, '--data', this.#path('data')]);
  }

  /** Makes a workspace with files, as a device of that person does. */
  addWorkspace(
    user: string,
    name: string,
    files: Record<string, string | Uint8Array> = {},
    flags: string[] = [],
  ) {
    const home = `${user}-device`;
    const root = this.#path(join('folders', user, name));
    mkdirSync(root, { recursive: true });
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
    }
    this.#command(home, ['login', this.url, '--user', user, '--password-stdin']);
    this.#command(home, ['init', root, '--workspace', name, ...flags]);
    this.#command(home, ['sync', root]);
  }

  /** Gets a workspace that was made elsewhere onto a device; returns where its folder is. */
  clone(user: string, workspace: string): string {
    const root = this.#path(join('folders', user, workspace));
    mkdirSync(dirname(root), { recursive: true });
    this.#command(`${user}-device`, ['login', this.url, '--user', user, '--password-stdin']);
    this.#command(`${user}-device`, ['clone', workspace, root]);
    return root;
  }

  /** Puts a file into the folder of a device, and brings it to the server. */
  write(user: string, workspace: string, path: string, content: string): void {
    const root = this.#path(join('folders', user, workspace));
    writeFileSync(join(root, path), content);
    this.sync(user, workspace);
  }

  /** Puts a file of so many pieces there, which is never in memory as a whole; returns where it lies. */
  async writeLarge(
    user: string,
    workspace: string,
    path: string,
    pieces: number,
    piece: () => Uint8Array,
  ): Promise<string> {
    const file = this.#path(join('folders', user, workspace, path));
    const open = await openFile(file, 'w');
    for (let number = 0; number < pieces; number++) await open.writeFile(piece());
    await open.close();
    this.sync(user, workspace);
    return file;
  }

  /** Returns the recovery key of an encrypted workspace. */
  recoveryKey(user: string, workspace: string): string {
    const root = this.#path(join('folders', user, workspace));
    const said = this.#command(`${user}-device`, ['key', 'show-recovery', root, '--json']);
    return (JSON.parse(said) as { recovery_key: string }).recovery_key;
  }

  /** Lets the device that made a workspace sync it; returns where its folder is. */
  sync(user: string, workspace: string): string {
    const root = this.#path(join('folders', user, workspace));
    this.#command(`${user}-device`, ['sync', root], [0, CONFLICTS]);
    return root;
  }

  /** Returns the copies that the device that made a workspace lists as conflicts, each with what it was kept beside. */
  conflicts(user: string, workspace: string): [string, string | null][] {
    const root = this.#path(join('folders', user, workspace));
    const said = this.#command(`${user}-device`, ['conflicts', root, '--json'], [0, CONFLICTS]);
    const { conflicts } = JSON.parse(said) as {
      conflicts: { path: string | null; copy: string }[];
    };
    return conflicts.map(({ path, copy }) => [copy, path]);
  }

  /** Removes all old versions, of what is deleted only what is older than a month. */
  cleanUp(user: string, workspace: string): void {
    const root = this.#path(join('folders', user, workspace));
    this.#command(`${user}-device`, ['cleanup', root, '--keep', 'deleted:30d']);
  }

  /** Returns the paths that the device that made a workspace lists as deleted. */
  deleted(user: string, workspace: string): string[] {
    const root = this.#path(join('folders', user, workspace));
    const listed = ['ls', root, '--deleted', '--recursive', '--json'];
    const { entries } = JSON.parse(this.#command(`${user}-device`, listed)) as {
      entries: { path: string; is_deleted: boolean }[];
    };
    return entries.filter((entry) => entry.is_deleted).map(({ path }) => path);
  }

  share(owner: string, workspace: string, rule: string, more: string[] = []): void {
    const root = this.#path(join('folders', owner, workspace));
    this.#command(`${owner}-device`, ['share', root, '--with', rule, ...more]);
  }

  /** Shuts somebody out; of an encrypted workspace the keys are made anew. */
  unshare(owner: string, workspace: string, user: string): void {
    const root = this.#path(join('folders', owner, workspace));
    this.#command(`${owner}-device`, ['share', 'rm', user, root, '--yes']);
  }

  /** Lets a device of somebody make an identity; returns its fingerprint, as it is read out. */
  fingerprint(user: string): string {
    const home = `${user}-device`;
    this.#command(home, ['login', this.url, '--user', user, '--password-stdin']);
    const said = this.#command(home, ['key', 'fingerprint', '--json'], [0], 'identity');
    return (JSON.parse(said) as { fingerprint: string }).fingerprint;
  }

  /** Runs the program as a device of somebody at a terminal of its own, where it may ask; `secret` is what its file of passphrases holds. */
  atTerminal(user: string, words: string[], secret = PASSWORD): Terminal {
    const file = join(this.#folder, `typed-${randomUUID()}`);
    writeFileSync(file, secret, { mode: 0o600 });
    const env = { ...this.#environment(`${user}-device`), SYNCLINE_PASSPHRASE_FILE: file };
    return new Terminal(binary(), words, env);
  }

  /** Where a workspace of somebody is kept in a folder. */
  folderOf(user: string, workspace: string): string {
    return this.#path(join('folders', user, workspace));
  }

  /** Signs a device in that has no workspace yet, or one that has under another name. */
  signInDevice(user: string, device: string, name?: string): void {
    const called = name === undefined ? [] : ['--device', name];
    const login = ['login', this.url, '--user', user, '--password-stdin', ...called];
    this.#command(`${device}-device`, login);
  }

  /** A client of its own, as another program of that person. */
  async client(user: string): Promise<SynclineClient> {
    const client = new SynclineClient({ base: this.url });
    await client.login({ user, password: PASSWORD, device_name: 'test' });
    return client;
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #environment(home: string, secret = 'passphrase'): NodeJS.ProcessEnv {
    return {
      PATH: process.env['PATH'],
      HOME: this.#path(home),
      SYNCLINE_HOME: this.#path(home),
      SYNCLINE_PASSPHRASE_FILE: this.#path(secret),
    };
  }

  #command(home: string, options: string[], good = [0], secret?: string): string {
    const run = spawnSync(binary(), options, {
      input: `${PASSWORD}\n`,
      env: this.#environment(home, secret),
      encoding: 'utf8',
    });
    if (!good.includes(run.status ?? -1))
      throw new Error(`syncline ${options.join(' ')}: ${run.stderr}`);
    return run.stdout;
  }
}
