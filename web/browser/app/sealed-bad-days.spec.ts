// Bad days of a file on its way into an encrypted workspace: the network goes, two tabs send one name, no room is left, the disk changes under
// it, somebody pauses. What is asserted each time by a device: no byte is lost, and none is mixed with another version.

import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { press } from '../hands.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openSealed, row, wipeStorage } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const DIARY = 'Diary';
const MIB = 1024 * 1024;

let server: RealServer;
const folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', DIARY, { 'from-device.txt': 'from a device\n' }, ['--sealed']);
});

test.afterAll(async () => {
  await server.end();
  rmSync(folder, { recursive: true });
});

const open = (page: Page) => openSealed(page, server, 'ada', 'from-device.txt');

function fileOf(name: string, length: number): { path: string; bytes: Buffer } {
  const bytes = randomBytes(length);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { path, bytes };
}

const picker = (page: Page) => page.locator('input[type=file]').first();
const lines = (page: Page) => page.getByRole('region', { name: 'Files on their way' });

/** What a device has after a sync. */
function onDevice(name: string): Buffer | null {
  const path = join(server.sync('ada', DIARY), name);
  return existsSync(path) ? readFileSync(path) : null;
}

/** Does something before the pack of that number is sent; tells which ones went, the one after the other. */
async function beforePack(page: Page, number: number, deed: () => unknown): Promise<string[]> {
  const seen: string[] = [];
  let packs = 0;
  await page.route('**/packs/*', async (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    if (++packs === number) await deed();
    seen.push(new URL(route.request().url()).pathname);
    await route.continue();
  });
  return seen;
}

test('it goes on where it was when the network is back', async ({ page }) => {
  const { path, bytes } = fileOf('away.bin', 15 * MIB);
  await open(page);
  let isAway = false;
  const seen = await beforePack(page, 3, () => {
    isAway = true;
    return page.context().setOffline(true);
  });
  await picker(page).setInputFiles(path);
  await expect.poll(() => isAway).toBe(true);
  expect(onDevice('away.bin')).toBeNull();
  await page.context().setOffline(false);
  await expect(lines(page)).toContainText('Done', { timeout: 40_000 });
  expect(onDevice('away.bin')?.equals(bytes)).toBe(true);
  // The third one went after the first two were stored, and these are not sent again.
  expect(seen.slice(2).filter((pack) => seen.slice(0, 2).includes(pack))).toEqual([]);
  expect(new Set(seen).size).toBeGreaterThanOrEqual(4);
});

test('two tabs that send the same name at once lose neither', async ({ page, context }) => {
  const [one, other] = [fileOf('twice.bin', 6 * MIB), randomBytes(5 * MIB)];
  await open(page);
  let release: (() => void) | undefined;
  await beforePack(page, 1, () => new Promise<void>((resolve) => (release = resolve)));
  await picker(page).setInputFiles(one.path);
  await expect.poll(() => release).toBeDefined();
  const tab = await context.newPage();
  await open(tab);
  const mimeType = 'application/octet-stream';
  await picker(tab).setInputFiles([{ name: 'twice.bin', mimeType, buffer: other }]);
  await expect(lines(tab)).toContainText('Done', { timeout: 30_000 });
  release?.();
  // Either somebody is asked, or it lies beside the other by itself.
  const keepBoth = lines(page).getByRole('button', { name: 'Keep both' });
  await expect(keepBoth.or(lines(page).getByText('Yours lies beside it.'))).toBeVisible({
    timeout: 30_000,
  });
  if (await keepBoth.isVisible()) await keepBoth.click();
  await expect(lines(page).getByRole('progressbar')).toHaveCount(0);
  await expect(row(page, 'twice')).toHaveCount(2);
  const names = readdirSync(server.sync('ada', DIARY)).filter((name) => name.startsWith('twice'));
  const found = names.map((name) => sum(onDevice(name) ?? Buffer.alloc(0)));
  expect(found.sort()).toEqual([one.bytes, other].map(sum).sort());
});

test('a quota that is full is said, nothing is half there, and when there is room the file arrives', async ({
  page,
}) => {
  const { path, bytes } = fileOf('roomy.bin', 9 * MIB);
  await open(page);
  const tiny = { name: 'tiny.txt', mimeType: 'text/plain', buffer: Buffer.from('tiny') };
  await picker(page).setInputFiles([tiny]);
  await expect(lines(page)).toContainText('Done');
  server.limit('ada', '1MiB');
  await picker(page).setInputFiles(path);
  await expect(lines(page).getByRole('alert')).toContainText('no room left');
  expect(onDevice('roomy.bin')).toBeNull();
  // What is over is cleared; what has failed stays.
  await lines(page).getByRole('button', { name: 'Clear what is over' }).click();
  await expect(lines(page).getByRole('listitem')).toHaveCount(1);
  await expect(lines(page).getByRole('button', { name: 'Clear what is over' })).toHaveCount(0);
  server.limit('ada', 'none');
  await lines(page).getByRole('button', { name: 'Try again' }).click();
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  expect(onDevice('roomy.bin')?.equals(bytes)).toBe(true);
});

test('where the log cannot be read after a commit that stands, the file is done, and no clash with itself', async ({
  page,
}) => {
  const { path, bytes } = fileOf('stands.bin', MIB);
  await open(page);
  let isCommitted = false;
  let refused = 0;
  await page.route('**/log*', async (route) => {
    if (route.request().method() === 'POST') isCommitted = true;
    else if (isCommitted && refused++ === 0) return route.abort('connectionreset');
    await route.continue();
  });
  await picker(page).setInputFiles(path);
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  expect([isCommitted, refused > 0]).toEqual([true, true]);
  await expect(row(page, 'stands')).toHaveCount(1);
  expect(onDevice('stands.bin')?.equals(bytes)).toBe(true);
});

test('a file that changes while it is sent never arrives half old and half new, and this is said', async ({
  page,
}) => {
  const { path } = fileOf('moving.bin', 40 * MIB);
  await open(page);
  await beforePack(page, 1, () => appendFileSync(path, 'more, while it is sent'));
  await picker(page).setInputFiles(path);
  await expect(lines(page).getByRole('alert')).toContainText('changed');
  expect(onDevice('moving.bin')).toBeNull();
  await picker(page).setInputFiles(path);
  await expect(lines(page)).toContainText('Done', { timeout: 40_000 });
  expect(sum(onDevice('moving.bin') ?? Buffer.alloc(0))).toBe(sum(readFileSync(path)));
});

test('a file becomes empty, and an empty one large', async ({ page }) => {
  const large = randomBytes(3 * MIB);
  await open(page);
  const mimeType = 'application/octet-stream';
  for (const [at, buffer] of [Buffer.alloc(0), large, Buffer.alloc(0)].entries()) {
    await picker(page).setInputFiles([{ name: 'breath.bin', mimeType, buffer }]);
    if (at > 0) await lines(page).getByRole('button', { name: 'Replace' }).click();
    await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
    await lines(page).getByRole('button', { name: 'Clear what is over' }).click();
    await expect(lines(page)).toHaveCount(0);
    expect(onDevice('breath.bin')?.equals(buffer)).toBe(true);
  }
});

test('it is paused, waits, and goes on where it was', async ({ page }) => {
  const { path, bytes } = fileOf('paused.bin', 23 * MIB);
  await open(page);
  let release: (() => void) | undefined;
  const seen = await beforePack(page, 3, () => new Promise<void>((go) => (release = go)));
  await picker(page).setInputFiles(path);
  await expect.poll(() => release).toBeDefined();
  await press(page, page.getByRole('button', { name: 'Pause: paused.bin' }));
  release?.();
  await expect(lines(page)).toContainText(/Paused at \d+ %/);
  await inEveryLook(page, () => expectAccessible(page));
  expect(onDevice('paused.bin')).toBeNull();
  await press(page, page.getByRole('button', { name: 'Resume: paused.bin' }));
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  expect(onDevice('paused.bin')?.equals(bytes)).toBe(true);
  expect(seen.slice(2).filter((pack) => seen.slice(0, 2).includes(pack))).toEqual([]);
  expect(new Set(seen).size).toBeGreaterThanOrEqual(6);
});

test('what the browser keeps is wiped while it is sent: no half of it is there, and after a sign-in it arrives', async ({
  page,
}) => {
  const { path, bytes } = fileOf('wiped.bin', 15 * MIB);
  await open(page);
  await beforePack(page, 2, () => wipeStorage(page, server));
  await picker(page).setInputFiles(path);
  const end = lines(page).getByText('Done').or(lines(page).getByRole('alert'));
  await expect(end.first()).toBeVisible({ timeout: 30_000 });
  const before = onDevice('wiped.bin');
  expect(before === null || before.equals(bytes)).toBe(true);
  // Nothing of the session or of the keys is left to somebody who opens it now.
  await page.reload();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await open(page);
  await picker(page).setInputFiles(path);
  const replace = lines(page).getByRole('button', { name: 'Replace' });
  const over = lines(page).getByText('Done');
  await expect(replace.or(over).first()).toBeVisible({ timeout: 30_000 });
  if (await replace.isVisible()) await replace.click();
  await expect(over).toBeVisible({ timeout: 30_000 });
  expect(onDevice('wiped.bin')?.equals(bytes)).toBe(true);
});
