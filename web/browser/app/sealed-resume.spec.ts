// A file on its way into an encrypted workspace whose page goes away: what is stored of it is not sent again.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { press } from '../hands.ts';
import { inEveryLook, openSealed, row, unlock as unlockHere } from '../steps.ts';
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

const KNOWN = 'from-device.txt';
const unlock = (page: Page) => unlockHere(page, KNOWN);
const open = (page: Page) => openSealed(page, server, 'ada', KNOWN);

function fileOf(name: string, length: number): { path: string; bytes: Buffer } {
  const bytes = randomBytes(length);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { path, bytes };
}

const choose = (page: Page, path: string) =>
  page.locator('input[type=file]').first().setInputFiles(path);

const lines = (page: Page) => page.getByRole('region', { name: 'Files on their way' });

/** Lets so many packs through and holds the others; counts those that went. */
async function holdAfter(page: Page, left: number): Promise<{ left: number; sent: number }> {
  const gate = { left, sent: 0 };
  await page.route('**/packs/*', async (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    if (gate.left-- <= 0) return;
    await route.continue();
    gate.sent++;
  });
  return gate;
}

const onDevice = (name: string) => readFileSync(join(server.sync('ada', DIARY), name));

/** All that the browser keeps for the page, as letters. */
function keptByBrowser(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const answer = <Answer>(request: IDBRequest<Answer>) =>
      new Promise<Answer>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error ?? new Error('it is not to be read'));
      });
    const letters = (_: string, value: unknown) =>
      ArrayBuffer.isView(value)
        ? String.fromCharCode(...new Uint8Array(value.buffer))
        : value instanceof FileSystemHandle
          ? value.name
          : value;
    const found: unknown[] = [Object.entries(localStorage), Object.entries(sessionStorage)];
    for (const { name = '' } of await indexedDB.databases()) {
      const database = await answer(indexedDB.open(name));
      for (const store of database.objectStoreNames) {
        const made = database.transaction(store).objectStore(store);
        found.push(name, await answer(made.getAll()), await answer(made.getAllKeys()));
      }
      database.close();
    }
    return JSON.stringify(found, letters);
  });
}

test('a file whose page was loaded anew is offered once the workspace is unlocked, and goes on when somebody picks it', async ({
  page,
}) => {
  const { path, bytes: large } = fileOf('geheimnis.bin', 23 * MIB);
  // A picker of the system cannot be driven; the inputs that stand for it can.
  await page.addInitScript(() => Reflect.deleteProperty(window, 'showOpenFilePicker'));
  await open(page);
  const gate = await holdAfter(page, 3);
  await choose(page, path);
  await expect.poll(() => gate.left).toBeLessThan(0);
  const kept = await keptByBrowser(page);
  expect(kept).toContain('syncline-sealed-transfers');
  expect(kept).not.toContain('geheimnis');
  await page.reload();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await expect(page.getByLabel('Passphrase or recovery key')).toBeFocused();
  await expect(page.getByText('geheimnis.bin')).toHaveCount(0);
  await unlock(page);
  await expect(lines(page)).toContainText('1 file was not finished.');
  await expect(lines(page)).toContainText('geheimnis.bin');
  await inEveryLook(page, () => expectAccessible(page));
  const pick = async (chosen: string) => {
    const asking = page.waitForEvent('filechooser');
    await press(page, lines(page).getByRole('button', { name: 'Pick the files' }));
    await (await asking).setFiles(chosen);
  };
  await pick(fileOf('wrong.bin', 10).path);
  await expect(lines(page).getByRole('alert')).toContainText('This is none of them');

  const rest = await holdAfter(page, 100);
  await pick(path);
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  expect(rest.sent).toBeGreaterThan(0);
  expect(rest.sent).toBeLessThanOrEqual(4);
  expect(onDevice('geheimnis.bin').equals(large)).toBe(true);
  await page.reload();
  await unlock(page);
  await expect(row(page, 'geheimnis.bin')).toBeVisible();
  await expect(lines(page)).toHaveCount(0);
});

test('what was on its way when somebody locked the workspace is offered, and gets the name and the place that were chosen', async ({
  page,
}) => {
  const { path, bytes } = fileOf('from-device.txt', 9 * MIB);
  await open(page);
  await page.getByRole('button', { name: 'New folder' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Box');
  await page.keyboard.press('Enter');
  await expect(row(page, 'Box')).toBeVisible();
  const gate = await holdAfter(page, 0);
  await choose(page, path);
  await lines(page).getByRole('button', { name: 'Keep both' }).click();
  await expect.poll(() => gate.left).toBeLessThan(0);
  await page.getByRole('button', { name: 'Lock now' }).click();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await unlock(page);
  await row(page, 'Box').dblclick();
  await expect(row(page, 'from-device.txt')).toHaveCount(0);
  await expect(lines(page)).toContainText('1 file was not finished.');
  await lines(page).locator('input[type=file]').first().setInputFiles(path);
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  expect(onDevice('from-device (2).txt').equals(bytes)).toBe(true);
  expect(onDevice('from-device.txt').toString()).toBe('from a device\n');
});

test('a file whose page was loaded anew goes on when somebody uploads it again', async ({
  page,
}) => {
  const { path, bytes: large } = fileOf('large.bin', 23 * MIB);
  await open(page);
  const gate = await holdAfter(page, 3);
  await choose(page, path);
  // The third one is stored, and the fourth one waits.
  await expect.poll(() => gate.left).toBeLessThan(0);
  await page.reload();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await unlock(page);
  await expect(lines(page)).toContainText('1 file was not finished.');

  const rest = await holdAfter(page, 100);
  await choose(page, path);
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  expect(rest.sent).toBeGreaterThan(0);
  expect(rest.sent).toBeLessThanOrEqual(4);
  expect(onDevice('large.bin').equals(large)).toBe(true);
  await lines(page).getByRole('button', { name: 'Clear what is over' }).click();
  await expect(lines(page)).toHaveCount(0);
});

test('a file that failed goes on from where it was, in the same page', async ({ page }) => {
  const { path, bytes: large } = fileOf('other.bin', 15 * MIB);
  await open(page);
  let left = 2;
  const stored: string[] = [];
  await page.route('**/packs/*', (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    if (left-- <= 0) return route.fulfill({ status: 507, body: '' });
    stored.push(route.request().url());
    return route.continue();
  });
  await choose(page, path);
  await expect(lines(page).getByRole('alert')).toBeVisible();
  expect(stored).toHaveLength(2);
  left = 100;
  await lines(page).getByRole('button', { name: 'Try again' }).click();
  await expect(lines(page)).toContainText('Done', { timeout: 30_000 });
  // Of the file, which is noise, each byte once: how many packs that are is a matter of its cuts, and one has some 4 MiB.
  const ada = await server.client('ada');
  const lengthOf = async (url: string) => {
    const [, workspace = '', pack = ''] = /workspaces\/(\w+)\/packs\/(\w+)/.exec(url) ?? [];
    const name = 'HEAD /workspaces/{workspace}/packs/{pack}';
    const { headers } = await ada.ask(name, { params: { workspace, pack } });
    return Number(headers.get('content-length'));
  };
  const sent = (await Promise.all(stored.map(lengthOf))).reduce((sum, length) => sum + length, 0);
  expect(sent).toBeGreaterThan(large.length);
  expect(sent).toBeLessThan(large.length + MIB);
  expect(onDevice('other.bin').equals(large)).toBe(true);
});

test('what is stored is given up, and nothing is said of it any more', async ({ page }) => {
  await open(page);
  const gate = await holdAfter(page, 1);
  await choose(page, fileOf('third.bin', 10 * MIB).path);
  await expect.poll(() => gate.left).toBeLessThan(0);
  await page.reload();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await unlock(page);
  await lines(page).getByRole('button', { name: 'Give them up' }).click();
  await expect(lines(page)).toHaveCount(0);
  await page.reload();
  await unlock(page);
  await expect(lines(page)).toHaveCount(0);
});

test('signing out forgets what is stored', async ({ page }) => {
  const kept = async () => {
    const all = await keptByBrowser(page);
    return ['"packs"', '"note"'].filter((word) => all.includes(word));
  };
  await open(page);
  const gate = await holdAfter(page, 1);
  await choose(page, fileOf('fourth.bin', 10 * MIB).path);
  await expect.poll(() => gate.left).toBeLessThan(0);
  await expect.poll(kept).toHaveLength(2);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  await expect.poll(kept).toEqual([]);
});
