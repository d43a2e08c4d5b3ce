// A folder that is kept in sync with one of an encrypted workspace: the browser folds, encrypts and decrypts, and a device has the same.

import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { card, edit, givePicked, look } from '../picked.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { looked, watchWire } from '../wire.ts';

const LETTER = 'Dear Bob, nobody else reads this letter.\n';

let server: RealServer;
let ada: SynclineClient;
let count = 0;
/** The workspace of a test, its name, and where the device has it. */
let workspace: string;
let name: string;
let root: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

test.beforeEach(async ({ page }) => {
  name = `Diary${++count}`;
  const before = new Set((await ada.workspaces()).map(({ id }) => id));
  const files = { 'letter.txt': LETTER, 'Briefe/an Bob.md': 'Lieber Bob' };
  server.addWorkspace('ada', name, files, ['--sealed']);
  workspace = (await ada.workspaces()).find(({ id }) => !before.has(id))?.id ?? '';
  root = server.folderOf('ada', name);
  await givePicked(page);
});

const secret = (page: Page) => page.getByLabel('Passphrase or recovery key');

async function unlock(page: Page): Promise<void> {
  await secret(page).fill(PASSWORD);
  await page.keyboard.press('Enter');
}

async function open(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: /Encrypted workspace/ }).first()).toBeVisible();
  await page.goto(`${server.url}/#/e/${workspace}`);
  await unlock(page);
  await expect(row(page, 'letter.txt')).toBeVisible();
}

/** Picks the folder for the root of the workspace. */
async function begin(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Keep in sync' }).press('Enter');
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).press('Enter');
  await page.getByRole('button', { name: 'Begin' }).press('Enter');
  await expect(card(page)).toContainText('In sync, watching');
}

/** What the device has once it has synced. */
function onDevice(path: string): Buffer | null {
  server.sync('ada', name);
  return existsSync(join(root, path)) ? readFileSync(join(root, path)) : null;
}

const headSeq = async () => (await ada.workspace(workspace)).head_seq;

test('what is in the folder and what a device has is on both sides, and the server hears no word of it', async ({
  page,
}) => {
  await watchWire(page);
  await open(page);
  const large = randomBytes(5_000_000);
  await edit(page, 'letter.txt', LETTER);
  await edit(page, 'Geheime Pläne/plan.txt', 'Top secret plan');
  await edit(page, 'large.bin', large);
  await page.getByRole('button', { name: 'Keep in sync' }).press('Enter');
  await expect(page.getByRole('heading', { name: `Keep “${name}” in sync` })).toBeVisible();
  await expect(page.getByText('The server sees neither names nor contents')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).press('Enter');
  await expect(card(page)).toContainText('3 items go up, 2 items come here, 1 item');
  const before = await headSeq();
  await page.getByRole('button', { name: 'Begin' }).press('Enter');
  await expect(card(page)).toContainText('In sync, watching');
  await expect(card(page)).toContainText('2 files sent, 1 file received');
  await expect(card(page)).toContainText(/4\.\d+ MiB on the wire for 4\.77 MiB/);
  expect((await look(page))['Briefe/an Bob.md']).toBe('Lieber Bob');
  expect(onDevice('large.bin')?.equals(large)).toBe(true);
  expect(onDevice('Geheime Pläne/plan.txt')?.toString()).toBe('Top secret plan');
  // A folder and two files: what both have is not sent.
  expect(await headSeq()).toBe(before + 3);

  const plain = ['Dear Bob', 'Lieber', 'secret plan', 'Geheime', 'letter', 'large', 'picked', name];
  const [, found] = await looked(page, [...plain, PASSWORD, large.subarray(1000, 1064)]);
  expect(found).toEqual([]);

  // Of a file that has changed a little, little is sent, and the card says how much.
  const [sent] = await looked(page, []);
  await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const handle = await folder.getFileHandle('large.bin');
    // Where it kept what was there, the browser would let the file keep its time, too.
    const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
    bytes.set(new TextEncoder().encode('changed here'), 1_000_000);
    const writable = await handle.createWritable();
    await writable.write(bytes);
    await writable.close();
  });
  large.write('changed here', 1_000_000);
  await expect(card(page)).toContainText('3 files sent');
  expect(onDevice('large.bin')?.equals(large)).toBe(true);
  expect((await looked(page, []))[0] - sent).toBeLessThan(1024 * 1024);
  await expect(card(page)).toContainText(/ [45](\.\d+)? MiB on the wire for 9\.54 MiB/);
});

test('what is edited, made, moved and deleted on one side is so on the other', async ({ page }) => {
  await open(page);
  await begin(page);
  await edit(page, 'letter.txt', 'edited in the folder\n');
  await expect(card(page)).toContainText('1 file sent');
  expect(onDevice('letter.txt')?.toString()).toBe('edited in the folder\n');
  server.write('ada', name, 'letter.txt', 'edited on the device, later\n');
  server.write('ada', name, 'Briefe/neu.md', 'new there');
  await expect
    .poll(() => look(page))
    .toMatchObject({ 'letter.txt': 'edited on the device, later\n', 'Briefe/neu.md': 'new there' });

  await expect(card(page)).toContainText('In sync, watching');
  await expect(card(page)).toContainText('4 files received');
  let packs = 0;
  page.on('request', (request) => void (packs += Number(request.url().includes('/packs/'))));
  await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const file = await folder.getFileHandle('letter.txt');
    const to = await folder.getDirectoryHandle('Archiv', { create: true });
    await (file as unknown as { move(to: object, name: string): Promise<void> }).move(
      to,
      'old.txt',
    );
  });
  await expect(card(page)).toContainText('1 moved');
  expect(onDevice('Archiv/old.txt')?.toString()).toBe('edited on the device, later\n');
  expect(onDevice('letter.txt')).toBeNull();
  renameSync(join(root, 'Archiv/old.txt'), join(root, 'back.txt'));
  server.sync('ada', name);
  await expect(card(page)).toContainText('2 moved');
  expect((await look(page))['back.txt']).toBe('edited on the device, later\n');
  expect(packs).toBe(0);

  await edit(page, 'Briefe', null);
  await expect.poll(() => onDevice('Briefe/neu.md')).toBeNull();
  await expect.poll(() => existsSync(join(server.sync('ada', name), 'Briefe'))).toBe(false);
  rmSync(join(root, 'back.txt'));
  server.sync('ada', name);
  await expect.poll(async () => 'back.txt' in (await look(page))).toBe(false);
  const day = new Date().toISOString().slice(0, 10);
  const trash = (await look(page))[`.syncline-trash/${day}/back.txt`];
  expect(trash).toBe('edited on the device, later\n');
});

test('where both sides edit, both are kept, and a device lists the copy as a conflict', async ({
  page,
}) => {
  await open(page);
  await begin(page);
  await card(page).getByRole('button', { name: 'Pause' }).press('Enter');
  await edit(page, 'letter.txt', 'mine');
  server.write('ada', name, 'letter.txt', 'theirs');
  await card(page).getByRole('button', { name: 'Resume' }).press('Enter');
  await expect(card(page)).toContainText('1 conflict, both kept');
  await expect(card(page)).toContainText('In sync, watching');
  const copy = /^letter \(conflict .+\)\.txt$/;
  const paths = Object.keys(await look(page)).filter((path) => !path.startsWith('.syncline-trash'));
  expect(paths.filter((path) => copy.test(path))).toHaveLength(1);
  const path = paths.find((one) => copy.test(one)) ?? '';
  expect([(await look(page))[path], (await look(page))['letter.txt']]).toEqual(['mine', 'theirs']);
  expect(onDevice(path)?.toString()).toBe('mine');
  expect(onDevice('letter.txt')?.toString()).toBe('theirs');
  expect(
    readdirSync(root)
      .filter((one) => !one.startsWith('.'))
      .sort(),
  ).toEqual(['Briefe', path, 'letter.txt'].sort());
  expect(server.conflicts('ada', name)).toEqual([[path, 'letter.txt']]);
});

test('what a device changes while a file is on its way is not written over, and both are kept', async ({
  page,
}) => {
  await open(page);
  await begin(page);
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let isHeld = false;
  await page.route('**/log', async (route) => {
    if (route.request().method() === 'POST') {
      isHeld = true;
      await released;
    }
    await route.continue();
  });
  await edit(page, 'letter.txt', 'of the folder');
  await expect.poll(() => isHeld).toBe(true);
  server.write('ada', name, 'letter.txt', 'of the device');
  release();
  await expect(card(page)).toContainText('1 conflict, both kept');
  await expect(card(page)).toContainText('In sync, watching');
  expect(onDevice('letter.txt')?.toString()).toBe('of the device');
  const [[copy = ''] = []] = server.conflicts('ada', name);
  expect(onDevice(copy)?.toString()).toBe('of the folder');
  expect(readdirSync(root).filter((one) => !one.startsWith('.'))).toHaveLength(3);
});

test('while it is locked neither side is touched, it is said, and it goes on when it is open again', async ({
  page,
}) => {
  await open(page);
  await begin(page);
  const files = page.getByRole('link', { name: 'Back to the files' });
  await files.press('Enter');
  await page.getByRole('button', { name: 'Lock now' }).press('Enter');
  await expect(secret(page)).toBeVisible();
  await page.goto(`${server.url}/#/sync`);
  await expect(card(page)).toContainText('Locked');
  await inEveryLook(page, () => expectAccessible(page));
  await edit(page, 'letter.txt', 'edited while it was locked');
  writeFileSync(join(root, 'from-device.txt'), 'made while it was locked');
  rmSync(join(root, 'Briefe'), { recursive: true });
  server.sync('ada', name);
  const head = await headSeq();
  const here = await look(page);
  // Longer than it waits between two looks.
  await page.waitForTimeout(6_000);
  expect([await headSeq(), await look(page)]).toEqual([head, here]);
  await page.reload();
  await page.goto(`${server.url}/#/f/${workspace}`);
  await expect(page.getByText('This workspace is encrypted, and locked.')).toBeVisible();
  await expectAccessible(page);
  await expect(card(page)).toContainText('Locked');
  await card(page).getByRole('link', { name: 'Unlock' }).press('Enter');
  await unlock(page);
  await expect(row(page, 'from-device.txt')).toBeVisible();
  await expect
    .poll(async () => (await look(page))['from-device.txt'])
    .toBe('made while it was locked');
  await expect
    .poll(async () => Object.keys(await look(page)).some((path) => path.startsWith('Briefe')))
    .toBe(false);
  await expect.poll(() => onDevice('letter.txt')?.toString()).toBe('edited while it was locked');
});

test('locked in the midst of a file it stops, and what was stored of it is not sent again', async ({
  page,
}) => {
  await open(page);
  await begin(page);
  let packs = 0;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/packs/*', async (route) => {
    const isPut = route.request().method() === 'PUT';
    if (isPut && ++packs === 2) await released;
    await route.continue().catch(() => undefined);
  });
  await page.getByRole('link', { name: 'Back to the files' }).press('Enter');
  await expect(row(page, 'letter.txt')).toBeVisible();
  const digest = await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const handle = await folder.getFileHandle('large.bin', { create: true });
    const noise = new Uint8Array(12_000_000);
    for (let at = 0; at < noise.length; at += 60_000)
      crypto.getRandomValues(noise.subarray(at, at + 60_000));
    const writable = await handle.createWritable();
    await writable.write(noise);
    await writable.close();
    return [...new Uint8Array(await crypto.subtle.digest('SHA-256', noise))];
  });
  await expect.poll(() => packs).toBe(2);
  // It may have been seen with nothing in it first.
  const head = await headSeq();
  await page.getByRole('button', { name: 'Lock now' }).press('Enter');
  await expect(secret(page)).toBeVisible();
  release();
  await page.waitForTimeout(1_000);
  expect(await headSeq()).toBe(head);
  await unlock(page);
  const sum = () => [
    ...createHash('sha256')
      .update(onDevice('large.bin') ?? '')
      .digest(),
  ];
  await expect.poll(sum).toEqual(digest);
  expect(Object.keys(await look(page)).filter((path) => path.includes('conflict'))).toEqual([]);
  // Of three packs and that of the lists only the one that was on its way is sent twice.
  expect(packs).toBeLessThanOrEqual(5);
});

test('rounds that nobody has begun are no use of the page: it locks in spite of them', async ({
  page,
}) => {
  await page.clock.install();
  await open(page);
  await page.getByRole('button', { name: 'Keep in sync' }).press('Enter');
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).press('Enter');
  await page.getByRole('button', { name: 'Begin' }).press('Enter');
  for (let step = 0; step < 20; step++) {
    await page.clock.runFor(5_000);
    if ((await card(page).textContent())?.includes('In sync, watching')) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  for (let minute = 0; minute < 9; minute++) {
    await edit(page, `note ${minute}.txt`, `minute ${minute}`);
    await page.clock.runFor(60_000);
  }
  await expect(card(page)).toContainText('In sync, watching');
  await page.clock.runFor(2 * 60_000);
  await expect(card(page)).toContainText('Locked');
  expect(onDevice('note 0.txt')?.toString()).toBe('minute 0');
});

test('where the browser gives no handles, a folder is dropped again, and only what has changed is sent', async ({
  page,
}) => {
  await page.addInitScript(() => {
    delete (window as { showDirectoryPicker?: unknown }).showDirectoryPicker;
  });
  await open(page);
  await page.getByRole('button', { name: 'Keep in sync' }).press('Enter');
  await expect(page.getByText('This browser cannot watch folders')).toBeVisible();
  const folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  try {
    writeFileSync(join(folder, 'letter.txt'), LETTER);
    writeFileSync(join(folder, 'new.txt'), 'new here');
    const drop = () => page.locator('input[type=file]').setInputFiles(folder);
    await drop();
    await expect(page.getByText('1 file sent, 1 file unchanged')).toBeVisible();
    await drop();
    await expect(page.getByText('0 files sent, 2 files unchanged')).toBeVisible();
    server.write('ada', name, 'letter.txt', 'theirs');
    writeFileSync(join(folder, 'letter.txt'), 'mine');
    await drop();
    await expect(page.getByText('1 file sent, 1 file unchanged')).toBeVisible();
    expect(onDevice('letter.txt')?.toString()).toBe('theirs');
    expect(onDevice('new.txt')?.toString()).toBe('new here');
    const [[copy = ''] = []] = server.conflicts('ada', name);
    expect(onDevice(copy)?.toString()).toBe('mine');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
