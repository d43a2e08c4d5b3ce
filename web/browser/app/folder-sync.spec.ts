// A folder that is kept in sync with one of a workspace.

import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { card, edit, keepInSync, look, makeBox, textOf } from '../picked.ts';
import { press } from '../hands.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
/** The workspace of a test, and the name of its folder. */
let workspace: string;
let name: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

test.beforeEach(async ({ page }) => {
  ({ workspace, name } = await makeBox(page, server, ada));
});

const there = (path: string) => textOf(ada, workspace, path);
const put = (path: string, content: string) => ada.putFile(workspace, path, new Blob([content]));

/** Signs in, and picks the folder for the root of the workspace. */
async function begin(page: Page): Promise<void> {
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
}

test('a folder is picked by keyboard, what would happen is said, and both sides have everything then', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', name);
  await edit(page, 'new/here.txt', 'here');
  await edit(page, 'plan.txt', 'first');
  await press(page, page.getByRole('button', { name: 'Keep in sync' }));
  await expect(page.getByRole('heading', { name: `Keep “${name}” in sync` })).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await press(page, page.getByRole('button', { name: 'Choose a folder of this computer' }));
  await expect(card(page)).toContainText('2 items go up, 2 items come here, 1 item');
  expect(await there('new/here.txt')).toBeNull();
  expect(Object.keys(await look(page))).toHaveLength(2);
  await inEveryLook(page, () => expectAccessible(page));
  await press(page, page.getByRole('button', { name: 'Begin' }));
  await expect(card(page)).toContainText('In sync, watching');
  await expect(card(page)).toContainText('1 file sent, 1 file received');
  expect(await look(page)).toEqual({
    'Letters/to bob.md': 'Dear Bob',
    'new/here.txt': 'here',
    'plan.txt': 'first',
  });
  expect(await there('new/here.txt')).toBe('here');
  expect((await ada.versions(workspace, 'plan.txt')).versions).toHaveLength(1);
  await inEveryLook(page, () => expectAccessible(page));
});

test('what is edited, made and deleted on one side is so on the other, and goes on after a reload', async ({
  page,
}) => {
  await begin(page);
  await edit(page, 'plan.txt', 'second');
  await expect.poll(() => there('plan.txt')).toBe('second');
  expect((await ada.versions(workspace, 'plan.txt')).versions).toHaveLength(2);
  await put('plan.txt', 'third, from elsewhere');
  await put('Letters/new.txt', 'new there');
  await expect
    .poll(() => look(page))
    .toMatchObject({
      'plan.txt': 'third, from elsewhere',
      'Letters/new.txt': 'new there',
    });
  await ada.delete(workspace, 'Letters/new.txt');
  await expect.poll(async () => 'Letters/new.txt' in (await look(page))).toBe(false);
  const day = new Date().toISOString().slice(0, 10);
  expect((await look(page))[`.syncline-trash/${day}/Letters/new.txt`]).toBe('new there');
  await edit(page, 'Letters', null);
  await expect.poll(() => ada.node(workspace, 'Letters')).toBeNull();
  expect(Object.keys(await look(page)).filter((path) => path.includes('part-'))).toEqual([]);
  await page.reload();
  // Nobody opens the page of synced folders: they are kept wherever in the app somebody is.
  await edit(page, 'plan.txt', 'after the reload');
  await expect.poll(() => there('plan.txt')).toBe('after the reload');
  await page.goto(`${server.url}/#/sync`);
  await expect(card(page)).toContainText('In sync, watching');
  await expect(card(page)).toContainText('1 file sent');
});

test('where both sides edit, both are kept, and the copy is named and listed', async ({ page }) => {
  await begin(page);
  await card(page).getByRole('button', { name: 'Pause' }).click();
  await edit(page, 'plan.txt', 'mine');
  await put('plan.txt', 'theirs');
  await card(page).getByRole('button', { name: 'Resume' }).click();
  const copy = /^plan \(conflict .+\)\.txt$/;
  await expect(card(page)).toContainText('1 conflict, both kept');
  await expect(card(page).getByRole('listitem')).toHaveText(copy);
  const found = await look(page);
  expect(found['plan.txt']).toBe('theirs');
  const path = Object.keys(found).find((one) => copy.test(one)) ?? '';
  expect(found[path]).toBe('mine');
  await expect.poll(() => there(encodeURIComponent(path))).toBe('mine');
  // The server knows what it is, and beside which version.
  const { conflicts } = await ada.call('GET /workspaces/{workspace}/conflicts', {
    params: { workspace },
  });
  expect(conflicts.map(({ original, base }) => [original?.name, base])).toEqual([['plan.txt', 1]]);
  await inEveryLook(page, () => expectAccessible(page));
});

test('a folder of the browser and one of a device agree on what both edit, make and delete', async ({
  page,
}) => {
  await begin(page);
  await edit(page, 'from/browser.txt', 'browser');
  await edit(page, 'plan.txt', null);
  await expect.poll(() => there('from/browser.txt')).toBe('browser');
  await expect.poll(() => there('plan.txt')).toBeNull();
  const root = server.sync('ada', name);
  expect(readFileSync(join(root, 'from/browser.txt'), 'utf8')).toBe('browser');
  expect(existsSync(join(root, 'plan.txt'))).toBe(false);
  writeFileSync(join(root, 'from/device.txt'), 'device');
  rmSync(join(root, 'Letters'), { recursive: true });
  server.sync('ada', name);
  await expect.poll(async () => (await look(page))['from/device.txt']).toBe('device');
  await expect
    .poll(async () => Object.keys(await look(page)).some((path) => path.startsWith('Letters')))
    .toBe(false);
  // Both edit the same file, and the device is first.
  await card(page).getByRole('button', { name: 'Pause' }).click();
  await edit(page, 'from/browser.txt', 'of the browser');
  writeFileSync(join(root, 'from/browser.txt'), 'of the device');
  server.sync('ada', name);
  await card(page).getByRole('button', { name: 'Resume' }).click();
  await expect(card(page)).toContainText('1 conflict, both kept');
  await expect(card(page)).toContainText('In sync, watching');
  server.sync('ada', name);
  const names = readdirSync(join(root, 'from')).sort();
  expect(names).toEqual([
    expect.stringMatching(/^browser \(conflict .+\)\.txt$/),
    'browser.txt',
    'device.txt',
  ]);
  const texts = names.map((one) => readFileSync(join(root, 'from', one), 'utf8'));
  expect(texts).toEqual(['of the browser', 'of the device', 'device']);
});

test('a file that is moved on one side is moved on the other: it keeps its versions, and is not sent', async ({
  page,
}) => {
  await begin(page);
  await put('plan.txt', 'second');
  await expect.poll(async () => (await look(page))['plan.txt']).toBe('second');
  // It lies there a moment before it is remembered, and who moves it then has made another file.
  await expect(card(page)).toContainText('3 files received');
  const { id } = (await ada.node(workspace, 'plan.txt')) ?? {};
  const sent: string[] = [];
  page.on('request', (request) => {
    const isBody = ['PUT', 'PATCH'].includes(request.method()) || request.url().includes('/delta/');
    if (isBody && !request.url().includes('/folders/')) sent.push(request.url());
  });
  await page.evaluate(async () => {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const folder = await root.getDirectoryHandle('Plans', { create: true });
    const file = await root.getFileHandle('plan.txt');
    const movable = file as unknown as { move(to: object, name: string): Promise<void> };
    await movable.move(folder, 'of today.txt');
  });
  await expect.poll(async () => (await ada.node(workspace, 'Plans/of%20today.txt'))?.id).toBe(id);
  expect(await ada.node(workspace, 'plan.txt')).toBeNull();
  expect(sent).toEqual([]);
  await expect(card(page)).toContainText('1 moved');
  await expect(card(page)).toContainText('In sync, watching');
  await ada.move(workspace, 'Plans/of%20today.txt', 'plan.txt');
  await expect.poll(async () => (await look(page))['plan.txt']).toBe('second');
  await expect(card(page)).toContainText('2 moved');
  const found = Object.keys(await look(page));
  expect(found.filter((path) => path.startsWith('.syncline-trash'))).toEqual([]);
  expect(found).not.toContain('Plans/of today.txt');
});

test('what is edited is remembered once or twice, and what has settled no more', async ({
  page,
}) => {
  await page.addInitScript(() => {
    const counted = { rows: 0 };
    Object.assign(globalThis, { counted });
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (...given) {
      counted.rows += Number(this.name === 'rows');
      return put.apply(this, given);
    };
  });
  await begin(page);
  const written = () =>
    page.evaluate(() => (globalThis as unknown as { counted: { rows: number } }).counted.rows);
  const before = await written();
  await edit(page, 'plan.txt', 'second');
  await expect.poll(() => there('plan.txt')).toBe('second');
  // It is looked at every four seconds.
  await page.waitForTimeout(10_000);
  const settled = await written();
  // What came in the beginning is remembered again, too, once it is older.
  expect(settled - before).toBeLessThanOrEqual(5);
  await page.waitForTimeout(5_000);
  expect(await written()).toBe(settled);
});

test('of a large file only what has changed is sent, where the browser can move files and where it cannot', async ({
  page,
}) => {
  for (const canMove of [true, false]) {
    if (!canMove) {
      await page.addInitScript(() => {
        delete (FileSystemFileHandle.prototype as { move?: unknown }).move;
      });
      await page.reload();
      await page.goto(`${server.url}/#/sync`);
    } else {
      await begin(page);
    }
    const large = randomBytes(3_000_000);
    await put('large.bin', '');
    await ada.putFile(workspace, 'large.bin', new Blob([new Uint8Array(large)]));
    const size = () =>
      page
        .evaluate(async () => {
          const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
          const file = await (await root.getFileHandle('large.bin')).getFile();
          return [file.size, new Uint8Array(await file.slice(-4).arrayBuffer()).join()];
        })
        // It is looked at while it is put there.
        .catch(() => []);
    await expect.poll(size).toEqual([3_000_000, large.subarray(-4).join()]);
    await expect(card(page)).toContainText('In sync, watching');
    const sent = page.waitForRequest((request) => request.url().includes('/delta/large.bin'));
    await page.evaluate(async () => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
      const handle = await root.getFileHandle('large.bin');
      const writable = await handle.createWritable({ keepExistingData: true });
      await writable.write({ type: 'write', position: 1_000_000, data: 'changed here' });
      await writable.close();
    });
    await sent;
    const expected = Buffer.from(large);
    expected.write('changed here', 1_000_000);
    const now = async () => {
      const { body } = await ada.file(workspace, 'large.bin');
      return Buffer.from(await new Response(body).arrayBuffer()).equals(expected);
    };
    await expect.poll(now).toBe(true);
    await expect(card(page)).toContainText(/\d[\d.]* (B|KiB) on the wire for 2\.86 MiB/);
    await put('plan.txt', canMove ? 'moved' : 'copied');
    await expect
      .poll(async () => (await look(page))['plan.txt'])
      .toBe(canMove ? 'moved' : 'copied');
    await ada.delete(workspace, 'large.bin');
    await expect.poll(async () => 'large.bin' in (await look(page))).toBe(false);
  }
});

test('a folder that is empty at once deletes nothing before somebody says so', async ({ page }) => {
  await begin(page);
  await edit(page, 'plan.txt', null);
  await expect.poll(() => there('plan.txt')).toBeNull();
  await edit(page, 'Letters/a.txt', 'a');
  await expect.poll(() => there('Letters/a.txt')).toBe('a');
  await edit(page, 'Letters', null);
  await edit(page, '.syncline-trash', null).catch(() => undefined);
  await expect(page.getByRole('alert')).toContainText(
    '3 items of 3 are not in the folder any more',
  );
  expect(await there('Letters/a.txt')).toBe('a');
  await inEveryLook(page, () => expectAccessible(page));
  await press(page, page.getByRole('button', { name: 'Bring them back here' }));
  await expect.poll(async () => (await look(page))['Letters/a.txt']).toBe('a');
  await expect(card(page)).toContainText('In sync, watching');
  expect((await look(page))['Letters/to bob.md']).toBe('Dear Bob');
  await edit(page, 'Letters', null);
  await page.getByRole('button', { name: 'Delete there, too' }).click();
  await expect.poll(() => ada.node(workspace, 'Letters')).toBeNull();
});

test('what cannot be synced is named, and a folder of a device, or one that is kept already, is refused', async ({
  page,
}) => {
  await begin(page);
  const fold = encodeURIComponent('.syncline-trash');
  await ada.makeFolder(workspace, fold);
  await put('after.txt', 'after');
  await expect.poll(async () => (await look(page))['after.txt']).toBe('after');
  await expect(card(page)).toContainText('1 not synced');
  await expect(card(page)).toContainText('.syncline-trash: has a name');
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await expect(page.getByRole('alert')).toContainText('is kept in sync already');
  await card(page).getByRole('button', { name: 'Stop syncing' }).click();
  await expect(card(page)).toHaveCount(0);
  await edit(page, '.syncline/root', 'x');
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await expect(page.getByRole('alert')).toContainText('A program of Syncline keeps this folder');
  expect(await there('after.txt')).toBe('after');
});

test('where the browser gives no handles, a folder is dropped again, and only what has changed is sent', async ({
  page,
}) => {
  await page.addInitScript(() => {
    delete (window as { showDirectoryPicker?: unknown }).showDirectoryPicker;
  });
  await openWorkspace(page, server, 'ada', name);
  await press(page, page.getByRole('button', { name: 'Keep in sync' }));
  await expect(page.getByText('This browser cannot watch folders')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Choose a folder of' })).toHaveCount(0);
  await inEveryLook(page, () => expectAccessible(page));
  const folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  try {
    const large = randomBytes(3_000_000);
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub/large.bin'), large);
    writeFileSync(join(folder, 'plan.txt'), 'first');
    const drop = () => page.locator('input[type=file]').setInputFiles(folder);
    await drop();
    await expect(page.getByText('1 file sent, 1 file unchanged')).toBeVisible();
    await drop();
    await expect(page.getByText('0 files sent, 2 files unchanged')).toBeVisible();
    large.write('changed here', 1_000_000);
    writeFileSync(join(folder, 'sub/large.bin'), large);
    await put('plan.txt', 'theirs');
    writeFileSync(join(folder, 'plan.txt'), 'mine');
    await drop();
    await expect(page.getByText('2 files sent, 0 files unchanged')).toBeVisible();
    await expect(page.getByText(/\d[\d.]* (B|KiB) on the wire for 2\.86 MiB/)).toBeVisible();
    await expect(page.getByRole('listitem').first()).toHaveText(/^plan \(conflict .+\)\.txt$/);
    await inEveryLook(page, () => expectAccessible(page));
    const { body } = await ada.file(workspace, 'sub/large.bin');
    expect(Buffer.from(await new Response(body).arrayBuffer()).equals(large)).toBe(true);
    expect(await there('plan.txt')).toBe('theirs');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
