// Transfers that are paused, and uploads that outlive their page.

import { randomBytes } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page, Request } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { press } from '../hands.ts';
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
  rmSync(folder, { recursive: true });
});

const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });
const picker = (page: Page) => page.locator('main input[type=file]').first();

async function content(path: string): Promise<Buffer> {
  const { body } = await ada.file(workspace, path);
  return Buffer.from(await new Response(body).arrayBuffer());
}

function fileOf(name: string, length: number): { path: string; bytes: Buffer } {
  const bytes = randomBytes(length);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { path, bytes };
}

/** Lets so many pieces through and holds the others; `offsets` says where each began. */
async function holdAfter(page: Page, count: number) {
  const offsets: number[] = [];
  const gate = { offsets, left: count };
  await page.route('**/uploads/*', async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    if (gate.left-- <= 0) return;
    offsets.push(Number(route.request().headers()['upload-offset']));
    return route.continue();
  });
  return gate;
}

test('an upload that is paused stays so while the network goes and comes, and goes on where it was', async ({
  page,
}) => {
  const { path, bytes } = fileOf('paused.bin', 3 * PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 1);
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('33 %');
  await press(page, page.getByRole('button', { name: 'Pause: paused.bin' }));
  await expect(tray(page)).toContainText('Paused at 33 %');
  await expectAccessible(page);
  await page.context().setOffline(true);
  await expect.poll(() => page.evaluate(() => navigator.onLine)).toBe(false);
  await page.context().setOffline(false);
  await expect.poll(() => page.evaluate(() => navigator.onLine)).toBe(true);
  await expect(tray(page)).toContainText('Paused at 33 %');
  expect(gate.offsets).toEqual([0]);
  gate.left = 99;
  await press(page, page.getByRole('button', { name: 'Resume: paused.bin' }));
  await expect(row(page, 'paused.bin')).toBeVisible();
  expect(gate.offsets).toEqual([0, PIECE, 2 * PIECE, 3 * PIECE]);
  expect(sum(await content('paused.bin'))).toBe(sum(bytes));
});

test('after the page was loaded anew an upload waits for its file, and goes on where the server has it', async ({
  page,
}) => {
  const { path, bytes } = fileOf('again.bin', 2 * PIECE + 7);
  const other = fileOf('other.bin', 100);
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 1);
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('49 %');
  await page.reload();
  await expect(tray(page)).toContainText('1 file was not finished.');
  await expectAccessible(page);
  const again = tray(page).locator('input[type=file]').first();
  await again.setInputFiles(other.path);
  await expect(tray(page).getByRole('alert')).toContainText('This is none of them');
  gate.left = 99;
  await again.setInputFiles(path);
  await expect(row(page, 'again.bin')).toBeVisible();
  expect(gate.offsets).toEqual([0, PIECE, 2 * PIECE]);
  expect(sum(await content('again.bin'))).toBe(sum(bytes));
  await page.reload();
  await expect(row(page, 'again.bin')).toBeVisible();
  await expect(tray(page)).toHaveCount(0);
});

test('another content of the same length and time does not go on where the one before was', async ({
  page,
}) => {
  const { path } = fileOf('image.bin', 2 * PIECE + 7);
  // Programs round parts of a millisecond up or down.
  const mtime = new Date(Math.floor(statSync(path).mtimeMs / 1000) * 1000);
  utimesSync(path, mtime, mtime);
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 1);
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('49 %');
  await page.reload();
  await expect(tray(page)).toContainText('1 file was not finished.');
  // As an image of a disk that was mounted, or what was built once more.
  const { bytes } = fileOf('image.bin', 2 * PIECE + 7);
  utimesSync(path, mtime, mtime);
  gate.left = 99;
  await tray(page).locator('input[type=file]').first().setInputFiles(path);
  await expect(row(page, 'image.bin')).toBeVisible();
  expect(gate.offsets).toEqual([0, 0, PIECE, 2 * PIECE]);
  expect(sum(await content('image.bin'))).toBe(sum(bytes));
});

test('who signs out in one tab forgets nothing that another one is sending', async ({
  page,
  context,
}) => {
  const { path, bytes } = fileOf('tabs.bin', 2 * PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 1);
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('49 %');
  const other = await context.newPage();
  await openWorkspace(other, server, 'ada', 'Box');
  await other.getByRole('button', { name: 'Sign out' }).click();
  await expect(other.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await page.reload();
  await expect(tray(page)).toContainText('1 file was not finished.');
  gate.left = 99;
  await tray(page).locator('input[type=file]').first().setInputFiles(path);
  await expect(row(page, 'tabs.bin')).toBeVisible();
  expect(gate.offsets).toEqual([0, PIECE, 2 * PIECE]);
  expect(sum(await content('tabs.bin'))).toBe(sum(bytes));
});

test('after the page was loaded anew a new version of which much has changed goes on where the server has it', async ({
  page,
}) => {
  const { path, bytes } = fileOf('film.bin', 24_000_000);
  const old = Buffer.concat([bytes.subarray(0, 7_000_000), bytes.subarray(17_000_000)]);
  await ada.putFile(workspace, 'film.bin', new Blob([new Uint8Array(old)]));
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 1);
  await picker(page).setInputFiles(path);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect.poll(() => gate.left).toBeLessThan(0);
  await page.reload();
  await expect(tray(page)).toContainText('1 file was not finished.');
  gate.left = 99;
  const again = tray(page).locator('input[type=file]').first();
  await again.setInputFiles(path);
  await expect(tray(page)).toContainText(/(9|10)(\.\d+)? MiB of 22\.9 MiB sent/);
  expect(gate.offsets).toEqual([0, PIECE, 2 * PIECE]);
  expect(sum(await content('film.bin'))).toBe(sum(bytes));
});

test('what the server has of a new version is nothing to go on with where somebody else was faster', async ({
  page,
}) => {
  const { path, bytes } = fileOf('reel.bin', 24_000_000);
  const old = Buffer.concat([bytes.subarray(0, 7_000_000), bytes.subarray(17_000_000)]);
  const theirs = Buffer.concat([randomBytes(1000), old]);
  const put = (bytes: Buffer) =>
    ada.putFile(workspace, 'reel.bin', new Blob([new Uint8Array(bytes)]));
  await put(old);
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 1);
  await picker(page).setInputFiles(path);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect.poll(() => gate.left).toBeLessThan(0);
  await page.reload();
  await put(theirs);
  gate.left = 99;
  await tray(page).locator('input[type=file]').first().setInputFiles(path);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(tray(page)).toContainText(/(9|10)(\.\d+)? MiB of 22\.9 MiB sent/);
  expect(gate.offsets).toEqual([0, 0, PIECE, 2 * PIECE]);
  const { versions } = await ada.versions(workspace, 'reel.bin');
  const { body } = await ada.file(workspace, 'reel.bin', { version: versions[1]?.version });
  expect(sum(Buffer.from(await new Response(body).arrayBuffer()))).toBe(sum(theirs));
  expect(versions).toHaveLength(3);
  expect(sum(await content('reel.bin'))).toBe(sum(bytes));
});

test('an upload whose file the browser finds again goes on by itself', async ({ page }) => {
  // The picker is a window of the system. What it returns stands in for it: a handle of a file that the page may read.
  await page.addInitScript(() => {
    const pick = async () => {
      const home = await navigator.storage.getDirectory();
      return [await home.getFileHandle('kept.bin')];
    };
    Object.defineProperty(window, 'showOpenFilePicker', { value: pick });
  });
  await openWorkspace(page, server, 'ada', 'Box');
  await page.evaluate(
    async (length) => {
      const home = await navigator.storage.getDirectory();
      const writable = await (
        await home.getFileHandle('kept.bin', { create: true })
      ).createWritable();
      await writable.write(new Uint8Array(length).map((_, at) => at % 251));
      await writable.close();
    },
    2 * PIECE + 7,
  );
  const gate = await holdAfter(page, 1);
  await page.getByRole('button', { name: 'Upload files' }).click();
  await expect(tray(page)).toContainText('49 %');
  // What this page sends next is held; let through, it would break off and be sent once more.
  await expect.poll(() => gate.left).toBeLessThan(0);
  gate.left = 99;
  await page.reload();
  await expect(row(page, 'kept.bin')).toBeVisible();
  expect(gate.offsets).toEqual([0, PIECE, 2 * PIECE]);
  const expected = Buffer.from(Array.from({ length: 2 * PIECE + 7 }, (_, at) => at % 251));
  expect(sum(await content('kept.bin'))).toBe(sum(expected));
});

test('what was not finished is given up at the server, too', async ({ page }) => {
  const { path } = fileOf('unwanted.bin', PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  const gate = await holdAfter(page, 0);
  await picker(page).setInputFiles(path);
  await expect.poll(() => gate.left).toBeLessThan(0);
  await page.reload();
  const ended = page.waitForRequest((request) => request.method() === 'DELETE');
  await tray(page).getByRole('button', { name: 'Give them up' }).click();
  await expect(tray(page)).toHaveCount(0);
  expect((await (await ended).response())?.status()).toBe(204);
  await page.reload();
  await expect(row(page, 'plan.txt')).toBeVisible();
  await expect(tray(page)).toHaveCount(0);
});

test('a download that is paused goes on where it was', async ({ page }) => {
  const bytes = randomBytes(24_000_000);
  await ada.putFile(workspace, 'film.bin', new Blob([new Uint8Array(bytes)]));
  await openWorkspace(page, server, 'ada', 'Box');
  const asked: Request[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/files/film.bin')) asked.push(request);
  });
  const network = await page.context().newCDPSession(page);
  const slow = { offline: false, latency: 0, uploadThroughput: -1, downloadThroughput: 4_000_000 };
  await network.send('Network.enable');
  await network.send('Network.emulateNetworkConditions', slow);
  await row(page, 'film.bin').click();
  await page.getByRole('button', { name: 'Download' }).click();
  await expect(tray(page)).toContainText(/[1-9]\d? %/);
  await expect(tray(page)).toContainText(/a second · about .+ left/);
  await page.getByRole('button', { name: 'Pause: film.bin' }).click();
  await expect(tray(page)).toContainText('Paused at');
  await network.send('Network.emulateNetworkConditions', { ...slow, downloadThroughput: -1 });
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Resume: film.bin' }).click();
  expect(sum(readFileSync(await (await download).path()))).toBe(sum(bytes));
  expect(asked).toHaveLength(2);
  expect(await asked[1]?.headerValue('range')).toMatch(/^bytes=[1-9]\d+-$/);
  expect((await asked[1]?.response())?.status()).toBe(206);
});

test('a folder that is dropped arrives with all that is in it, and with its empty folders', async ({
  page,
}) => {
  const dropped = join(folder, 'trip');
  const counts = { 'day 1/photos & more': 105, 'day 2/x/y/z': 3 };
  for (const [path, count] of Object.entries(counts)) {
    mkdirSync(join(dropped, path), { recursive: true });
    for (let at = 0; at < count; at++) writeFileSync(join(dropped, path, `${at}.txt`), `${at}`);
  }
  mkdirSync(join(dropped, 'empty', 'ünd leer'), { recursive: true });
  await openWorkspace(page, server, 'ada', 'Box');
  const input = await page.context().newCDPSession(page);
  const data = { items: [], files: [dropped], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await input.send('Input.dispatchDragEvent', { type, x: 500, y: 400, data });
  }
  await expect(tray(page)).toContainText('108 of 108 files');
  const names = async (path: string) => {
    const found: string[] = [];
    for await (const nodes of ada.folder(workspace, path)) found.push(...nodes.map((n) => n.name));
    return found.sort();
  };
  expect(await names('trip')).toEqual(['day 1', 'day 2', 'empty']);
  expect(await names('trip/empty')).toEqual(['ünd leer']);
  expect(await names('trip/day%201/photos%20%26%20more')).toHaveLength(105);
  expect(await names('trip/day%202/x/y/z')).toEqual(['0.txt', '1.txt', '2.txt']);
  expect((await content('trip/day%201/photos%20%26%20more/42.txt')).toString()).toBe('42');
});
