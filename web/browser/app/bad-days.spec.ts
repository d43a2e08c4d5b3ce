// Bad days of an upload: the network goes, what the browser keeps is wiped or has no room, the disk changes under it, somebody else was there
// meanwhile, no room is left at the server. `killed.spec.ts` has those on which the browser dies.
// What is asserted each time: no byte is lost, none is mixed with another version, and none is sent twice that the server has.

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
import type { Page, Request, Route } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { press } from '../hands.ts';
import { RealServer } from '../server.ts';
import { openWorkspace, row, storageOf, wipeStorage } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';
import { countSent } from '../wire.ts';

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

test('a new version of which much has changed goes on where it was when the network is back, and sends nothing twice', async ({
  page,
}) => {
  const { path, bytes } = fileOf('film.bin', 24_000_000);
  const old = Buffer.concat([bytes.subarray(0, 7_000_000), bytes.subarray(17_000_000)]);
  await put('film.bin', old);
  await openWorkspace(page, server, 'ada', 'Box');
  const offsets = taken(page);
  await beforePiece(page, 2, () => page.context().setOffline(true));
  await picker(page).setInputFiles(path);
  await press(page, page.getByRole('button', { name: 'Replace' }));
  await expect(tray(page)).toContainText('Trying again');
  expect(offsets).toEqual([0]);
  expect(sum(await content('film.bin'))).toBe(sum(old));
  await page.context().setOffline(false);
  await expect(tray(page)).toContainText(/(9|10)(\.\d+)? MiB of 22\.9 MiB sent/);
  expect(offsets).toEqual([0, PIECE, 2 * PIECE]);
  const { versions } = await ada.versions(workspace, 'film.bin');
  const kept = await Promise.all(versions.map(({ version }) => content('film.bin', version)));
  expect(kept.map(sum)).toEqual([old, bytes].map(sum));
});

test('where the answer to a new version of which much has changed is lost it is found, and nothing is sent again', async ({
  page,
}) => {
  const { path, bytes } = fileOf('scene.bin', 24_000_000);
  const old = Buffer.concat([bytes.subarray(0, 7_000_000), bytes.subarray(17_000_000)]);
  await put('scene.bin', old);
  await openWorkspace(page, server, 'ada', 'Box');
  const offsets = taken(page);
  let lost = 0;
  const lose = async (route: Route) => {
    await route.fetch();
    lost++;
    await route.abort();
  };
  await page.route('**/uploads/*/delta', lose, { times: 1 });
  await picker(page).setInputFiles(path);
  await press(page, page.getByRole('button', { name: 'Replace' }));
  await expect(tray(page)).toContainText('1 of 1 file');
  expect(lost).toBe(1);
  expect(offsets).toEqual([0, PIECE, 2 * PIECE]);
  expect((await ada.versions(workspace, 'scene.bin')).versions).toHaveLength(2);
  expect(sum(await content('scene.bin'))).toBe(sum(bytes));
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
  await press(page, page.getByRole('button', { name: 'Keep both' }));
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
  await press(page, page.getByRole('button', { name: 'Replace' }));
  await expect(tray(page)).toContainText('A file of this name is there already.');
  expect(sum(await content('both.bin'))).toBe(sum(theirs));
  await press(page, page.getByRole('button', { name: 'Replace' }));
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

test('a file that is saved behind its only piece is not put half old and half new', async ({
  page,
}) => {
  const { path } = fileOf('behind.bin', PIECE / 2);
  await openWorkspace(page, server, 'ada', 'Box');
  let isSaved = false;
  await page.route('**/uploads/*', async (route) => {
    if (isSaved || route.request().method() !== 'PATCH') return route.continue();
    isSaved = true;
    const response = await route.fetch();
    appendFileSync(path, 'saved meanwhile');
    await route.fulfill({ response });
  });
  await picker(page).setInputFiles(path);
  await expect(tray(page)).toContainText('has changed');
  expect([isSaved, await ada.node(workspace, 'behind.bin')]).toEqual([true, null]);
});

test('folders that cannot be made while the server is away are made when it is back', async ({
  page,
}) => {
  const box = join(folder, 'many');
  mkdirSync(join(box, 'in here'), { recursive: true });
  for (let at = 0; at < 8; at++) writeFileSync(join(box, 'in here', `${at}.txt`), `${at}`);
  await openWorkspace(page, server, 'ada', 'Box');
  let refused = 0;
  await page.route('**/folders/many*', (route) => {
    const isMaking = route.request().method() === 'PUT';
    return isMaking && refused++ < 2 ? route.abort('connectionreset') : route.continue();
  });
  await page.locator('main input[type=file][webkitdirectory]').setInputFiles(box);
  await expect(tray(page)).toContainText('8 of 8 files', { timeout: 30_000 });
  expect(refused).toBeGreaterThan(2);
  expect((await content('many/in%20here/7.txt')).toString()).toBe('7');
});

test('a file that changes while what has changed in it is looked for is not put, and this is said', async ({
  page,
}) => {
  const old = randomBytes(2 * PIECE);
  await put('edited.bin', old);
  const { path } = fileOf('edited.bin', 1);
  const mine = Buffer.from(old);
  mine.write('edited', 1_000_000);
  writeFileSync(path, mine);
  await openWorkspace(page, server, 'ada', 'Box');
  let isChanged = false;
  await page.route('**/chunks/**', (route) => {
    if (!isChanged) appendFileSync(path, 'more, while it is read');
    isChanged = true;
    return route.continue();
  });
  await picker(page).setInputFiles(path);
  await press(page, page.getByRole('button', { name: 'Replace' }));
  await expect(tray(page)).toContainText('has changed');
  expect(isChanged).toBe(true);
  expect(sum(await content('edited.bin'))).toBe(sum(old));
  await picker(page).setInputFiles(path);
  await press(page, page.getByRole('button', { name: 'Replace' }));
  await expect.poll(async () => sum(await content('edited.bin'))).toBe(sum(readFileSync(path)));
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
  await press(page, page.getByRole('button', { name: 'Retry: roomy.bin' }));
  await expect(row(page, 'roomy.bin')).toBeVisible();
  expect(sum(await content('roomy.bin'))).toBe(sum(bytes));
});

test('where the browser has no room left for what it remembers, uploads and edits arrive all the same, and cost little', async ({
  page,
}) => {
  const bytes = Buffer.from(randomBytes(PIECE).toString('hex'));
  await openWorkspace(page, server, 'ada', 'Box');
  let asked = 0;
  const wire = countSent(page);
  page.on('requestfinished', (request) => {
    if (/\/(chunks|delta)\/unkept.txt/.test(request.url())) asked += 1;
  });
  /** Sends a version; returns how many requests were made of what the server has of the one before, and the bytes of all. */
  const send = async (text: string, button?: string) => {
    asked = 0;
    await wire.take();
    const buffer = Buffer.concat([bytes, Buffer.from(text)]);
    await picker(page).setInputFiles([{ name: 'unkept.txt', mimeType: 'text/plain', buffer }]);
    if (button) await page.getByRole('button', { name: button }).click();
    await expect(tray(page)).toContainText('1 of 1 file');
    await page.getByRole('button', { name: 'Clear finished' }).click();
    await expect(tray(page)).toHaveCount(0);
    expect(sum(await content('unkept.txt'))).toBe(sum(buffer));
    return { asked, sent: await wire.take() };
  };
  const letKeep = await storageOf(page, server);
  await letKeep(0);
  await send('one');
  const unknown = await send('two', 'Replace');
  await letKeep();
  await send('three', 'Replace');
  const known = await send('four', 'Replace');
  expect(known.asked).toBe(1);
  expect(unknown.asked).toBeGreaterThan(1);
  expect(unknown.sent).toBeLessThan(PIECE / 10);
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

test('what the browser keeps is wiped while it is sent: no half of it is there, and after a sign-in it arrives', async ({
  page,
}) => {
  const { path, bytes } = fileOf('wiped.bin', 3 * PIECE + 7);
  await openWorkspace(page, server, 'ada', 'Box');
  await beforePiece(page, 2, () => wipeStorage(page, server));
  await picker(page).setInputFiles(path);
  const end = tray(page).getByText('1 of 1 file').or(tray(page).getByRole('alert'));
  await expect(end.first()).toBeVisible();
  const before = await ada.node(workspace, 'wiped.bin');
  if (before) expect(sum(await content('wiped.bin'))).toBe(sum(bytes));
  // Nothing of the session is left to somebody who opens it now.
  await page.reload();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await openWorkspace(page, server, 'ada', 'Box');
  await picker(page).setInputFiles(path);
  const replace = tray(page).getByRole('button', { name: 'Replace' });
  const over = tray(page).getByText('1 of 1 file');
  await expect(replace.or(over).first()).toBeVisible();
  if (await replace.isVisible()) await replace.click();
  await expect(over).toBeVisible();
  expect(sum(await content('wiped.bin'))).toBe(sum(bytes));
});
