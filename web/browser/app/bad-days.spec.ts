// Bad days of an upload: the network goes, the browser dies, the disk changes under it, somebody else was there meanwhile, no room is left.
// What is asserted each time: no byte is lost, none is mixed with another version, and none is sent twice that the server has.

import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type Page, type Request } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { RealServer } from '../server.ts';
import { openWorkspace, row } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const PIECE = 4 * 1024 * 1024;

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let folder: string;

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Box', { 'plan.txt': 'old' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(async () => {
  await server.end();
  // Parts of a browser that was killed may write on for a moment.
  rmSync(folder, { recursive: true, maxRetries: 20, retryDelay: 100 });
});

const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });
const picker = (page: Page) => page.locator('main input[type=file]').first();

async function content(path: string, version?: number): Promise<Buffer> {
  const { body } = await ada.file(workspace, path, version === undefined ? {} : { version });
  return Buffer.from(await new Response(body).arrayBuffer());
}

const put = (path: string, bytes: Buffer) =>
  ada.putFile(workspace, path, new Blob([new Uint8Array(bytes)]));

function fileOf(name: string, length: number): { path: string; bytes: Buffer } {
  const bytes = randomBytes(length);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { path, bytes };
}

/** Where the pieces began that the server took. */
function taken(page: Page): number[] {
  const offsets: number[] = [];
  page.on('requestfinished', async (request: Request) => {
    if (request.method() !== 'PATCH') return;
    const response = await request.response();
    if (response?.ok()) offsets.push(Number(request.headers()['upload-offset']));
  });
  return offsets;
}

/** Does something in the middle of an upload, before its piece of that number goes on. */
async function beforePiece(page: Page, number: number, deed: () => unknown): Promise<void> {
  let pieces = 0;
  await page.route('**/uploads/*', async (route) => {
    if (route.request().method() === 'PATCH' && ++pieces === number) await deed();
    return route.continue();
  });
}

test('an upload goes on where it was when the network is back, and sends nothing twice', async ({
  page,
}) => {
  const { path, bytes } = fileOf('away.bin', 3 * PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  const offsets = taken(page);
  await beforePiece(page, 3, () => page.context().setOffline(true));
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('Trying again');
  expect(offsets).toEqual([0, PIECE]);
  expect(await ada.node(workspace, 'away.bin')).toBeNull();
  await page.context().setOffline(false);
  await expect(row(page, 'away.bin')).toBeVisible();
  expect(offsets).toEqual([0, PIECE, 2 * PIECE, 3 * PIECE]);
  expect(sum(await content('away.bin'))).toBe(sum(bytes));
});

/** Browsers of a test that may still run. */
const started: ChildProcess[] = [];

test.afterEach(async () => {
  for (const process of started.splice(0)) await kill(process);
});

/** A browser with a profile on the disk, as people have one, which can be killed. */
async function startBrowser(profile: string): Promise<{ page: Page; process: ChildProcess }> {
  const port = join(profile, 'DevToolsActivePort');
  rmSync(port, { force: true });
  const flags = ['--headless', '--no-sandbox', '--disable-sync', '--lang=en-GB', '--no-first-run'];
  const process_ = spawn(
    process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    [...flags, `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank'],
    { stdio: 'ignore' },
  );
  started.push(process_);
  const address = () => {
    try {
      return readFileSync(port, 'utf8').split('\n')[0] ?? '';
    } catch {
      return '';
    }
  };
  await expect.poll(address).not.toBe('');
  const browser: Browser = await chromium.connectOverCDP(`http://127.0.0.1:${address()}`);
  const [context] = browser.contexts();
  if (!context) throw new Error('the browser has no window');
  // The picker of the system cannot be driven; a handle of a file of the browser's own stands in for what it returns.
  await context.addInitScript(() => {
    const pick = async () => [
      await (await navigator.storage.getDirectory()).getFileHandle('kept.bin'),
    ];
    Object.defineProperty(window, 'showOpenFilePicker', { value: pick });
  });
  const page = await context.newPage();
  // Such a page knows nothing of the limits of the configuration: what does not come is named.
  page.setDefaultTimeout(60_000);
  return { page, process: process_ };
}

async function kill(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const ended = new Promise((resolve) => process.once('exit', resolve));
  process.kill('SIGKILL');
  await ended;
}

test('a browser that is killed in mid-upload goes on after its next start, and sends nothing twice', async () => {
  const profile = join(folder, 'profile');
  rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  mkdirSync(profile);
  const length = 3 * PIECE + 7;
  const first = await startBrowser(profile);
  await first.page.goto(server.url);
  await first.page.evaluate(async (length) => {
    const home = await navigator.storage.getDirectory();
    const file = await home.getFileHandle('kept.bin', { create: true });
    const writable = await file.createWritable();
    await writable.write(new Uint8Array(length).map((_, at) => at % 251));
    await writable.close();
  }, length);
  await first.page.getByLabel('Stay signed in').check();
  await openWorkspace(first.page, server, 'ada', 'Box');
  const before = taken(first.page);
  let isHeld = false;
  await beforePiece(first.page, 3, () => {
    isHeld = true;
    return new Promise(() => undefined);
  });
  await first.page.getByRole('button', { name: 'Upload files' }).click();
  await expect.poll(() => isHeld).toBe(true);
  await kill(first.process);
  expect(before).toEqual([0, PIECE]);
  expect(await ada.node(workspace, 'kept.bin')).toBeNull();

  const second = await startBrowser(profile);
  const after = taken(second.page);
  // Who was signed in a browser writes down when it has time, and forgets it in its death.
  await openWorkspace(second.page, server, 'ada', 'Box');
  await expect(row(second.page, 'kept.bin')).toBeVisible();
  expect(after).toEqual([2 * PIECE, 3 * PIECE]);
  const expected = Buffer.from(Array.from({ length }, (_, at) => at % 251));
  expect(sum(await content('kept.bin'))).toBe(sum(expected));
});

test('two tabs that send the same name at once lose neither, and leave alone what the other sends', async ({
  page,
  context,
}) => {
  const [one, other] = [fileOf('twice.bin', PIECE + 7), randomBytes(PIECE + 9)];
  await openWorkspace(page, server, 'ada', 'Box');
  let release: () => void = () => undefined;
  await beforePiece(page, 2, () => new Promise<void>((resolve) => (release = resolve)));
  await picker(page).setInputFiles(one.path);
  await expect(tray(page)).toContainText('99 %');
  const tab = await context.newPage();
  await openWorkspace(tab, server, 'ada', 'Box');
  await expect(tray(tab)).toHaveCount(0);
  const mimeType = 'application/octet-stream';
  await picker(tab).setInputFiles([{ name: 'twice.bin', mimeType, buffer: other }]);
  await expect(row(tab, 'twice.bin')).toBeVisible();
  release();
  await expect(tray(page)).toContainText('A file of this name is there already.');
  await page.getByRole('button', { name: 'Keep both' }).click();
  await expect(row(page, 'twice (2).bin')).toBeVisible();
  expect(sum(await content('twice.bin'))).toBe(sum(other));
  expect(sum(await content('twice%20(2).bin'))).toBe(sum(one.bytes));
});

test('a file that a device changes while its replacement is sent is asked about, and nothing is lost', async ({
  page,
}) => {
  const [old, theirs] = [randomBytes(PIECE), randomBytes(PIECE + 1)];
  await put('both.bin', old);
  const mine = fileOf('both.bin', PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  await beforePiece(page, 2, () => put('both.bin', theirs));
  await picker(page).setInputFiles(mine.path);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(tray(page)).toContainText('A file of this name is there already.');
  expect(sum(await content('both.bin'))).toBe(sum(theirs));
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(tray(page)).toContainText('1 of 1 file');
  const { versions } = await ada.versions(workspace, 'both.bin');
  const kept = await Promise.all(versions.map(({ version }) => content('both.bin', version)));
  expect(kept.map(sum)).toEqual([old, theirs, mine.bytes].map(sum));
});

test('a file that changes while it is sent never arrives half old and half new, and this is said', async ({
  page,
}) => {
  const { path } = fileOf('moving.bin', 2 * PIECE);
  await openWorkspace(page, server, 'ada', 'Box');
  await beforePiece(page, 2, () => appendFileSync(path, 'more, while it is sent'));
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('has changed');
  expect(await ada.node(workspace, 'moving.bin')).toBeNull();
  await picker(page).setInputFiles(path);
  await expect(row(page, 'moving.bin')).toBeVisible();
  expect(sum(await content('moving.bin'))).toBe(sum(readFileSync(path)));
});

test('a quota that is full is said and leaves nothing behind, and when there is room the file arrives', async ({
  page,
}) => {
  const { path, bytes } = fileOf('roomy.bin', 2 * PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  server.limit('ada', '1MiB');
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('no room left');
  expect(await ada.node(workspace, 'roomy.bin')).toBeNull();
  server.limit('ada', 'none');
  await page.getByRole('button', { name: 'Retry: roomy.bin' }).click();
  await expect(row(page, 'roomy.bin')).toBeVisible();
  expect(sum(await content('roomy.bin'))).toBe(sum(bytes));
});

test('a file becomes empty, and an empty one large, and both versions stay', async ({ page }) => {
  const large = randomBytes(2 * PIECE);
  await openWorkspace(page, server, 'ada', 'Box');
  const send = async (buffer: Buffer, button?: string) => {
    const mimeType = 'application/octet-stream';
    await picker(page).setInputFiles([{ name: 'breath.bin', mimeType, buffer }]);
    if (button) await page.getByRole('button', { name: button }).click();
    await expect(tray(page)).toContainText('1 of 1 file');
    await page.getByRole('button', { name: 'Clear finished' }).click();
    await expect(tray(page)).toHaveCount(0);
  };
  await send(Buffer.alloc(0));
  await send(large, 'Replace');
  await send(Buffer.alloc(0), 'Replace');
  const { versions } = await ada.versions(workspace, 'breath.bin');
  const kept = await Promise.all(versions.map(({ version }) => content('breath.bin', version)));
  expect(kept.map(sum)).toEqual([Buffer.alloc(0), large, Buffer.alloc(0)].map(sum));
});
