import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Page, Route } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const PHOTO = randomBytes(7 * 1024 * 1024);
/** Photographs that a device stores in a shorter form, and of which the page makes the file again. */
const SAMPLES = new URL('../../../crates/content/src/jpeg/samples/', import.meta.url);
const PHOTOGRAPHS = ['photo', '420', '422', '444', 'cmyk', 'grey', 'restart'].map((kind) => {
  return { name: `${kind}.jpg`, bytes: readFileSync(new URL(`${kind}.jpg`, SAMPLES)) };
});
const LETTER = 'Dear Bob, nobody else reads this.\n';

let server: RealServer;
let ada: SynclineClient;
let recoveryKey: string;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob']) server.addUser(name);
  const files = {
    'letter.txt': LETTER,
    'empty.txt': '',
    'Bilder/größe.bin': PHOTO,
    'Bilder/2026/notes.md': '# Notes\n',
    ...Object.fromEntries(PHOTOGRAPHS.map(({ name, bytes }) => [`Bilder/${name}`, bytes])),
  };
  server.addWorkspace('ada', 'Diary', files, ['--sealed']);
  recoveryKey = server.recoveryKey('ada', 'Diary');
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

async function openLocked(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await expect(page.getByLabel('Passphrase or recovery key')).toBeFocused();
}

async function unlock(page: Page, secret = PASSWORD): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(secret);
  await page.keyboard.press('Enter');
}

async function open(page: Page): Promise<void> {
  await openLocked(page);
  await unlock(page);
  await expect(row(page, 'letter.txt')).toBeVisible();
}

async function saved(page: Page, name: string): Promise<Buffer> {
  const download = page.waitForEvent('download');
  await row(page, name).click();
  await page.getByRole('button', { name: 'Download' }).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe(name);
  return readFile(await file.path());
}

/** Changes what the server answers, as one that lies does. */
async function lie(route: Route, change: (bytes: Buffer) => Buffer): Promise<void> {
  const response = await route.fetch();
  await route.fulfill({ response, body: change(await response.body()) });
}

function flipped(bytes: Buffer, at = Math.floor(bytes.length / 2)): Buffer {
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes;
}

test('a passphrase opens an encrypted workspace, and a wrong one says so', async ({ page }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(`${request.url()} ${request.postData() ?? ''}`));
  await openLocked(page);
  await inEveryLook(page, () => expectAccessible(page));
  await unlock(page, 'not this one');
  await expect(page.getByRole('alert')).toHaveText(
    'This passphrase or recovery key does not open the workspace.',
  );
  await expect(page.getByLabel('Passphrase or recovery key')).toBeFocused();
  const began = Date.now();
  await unlock(page);
  await expect(row(page, 'letter.txt')).toContainText(`${LETTER.length} B`);
  console.log(`unlocked and read in ${Date.now() - began} ms`);
  await expect(page).toHaveTitle('Diary – Syncline');
  await expect(page.getByText('3 items')).toBeVisible();
  // Of folders devices keep no time.
  await expect(row(page, 'Bilder').locator('time')).toHaveText('');
  await inEveryLook(page, () => expectAccessible(page));
  expect(asked.filter((text) => text.includes(PASSWORD) && !text.includes('/login'))).toEqual([]);
});

test('folders open by keyboard, files come out byte for byte, and no name is in an address', async ({
  page,
}) => {
  await open(page);
  expect((await saved(page, 'letter.txt')).toString()).toBe(LETTER);
  expect(await saved(page, 'empty.txt')).toHaveLength(0);
  await page.getByRole('grid').focus();
  await page.keyboard.type('bil');
  await page.keyboard.press('Enter');
  await expect(row(page, 'größe.bin')).toContainText('7 MiB');
  expect(page.url()).not.toMatch(/Bilder|Diary/);
  const began = Date.now();
  expect(sum(await saved(page, 'größe.bin'))).toBe(sum(PHOTO));
  console.log(`7 MiB came in ${Date.now() - began} ms`);
  for (const { name, bytes } of PHOTOGRAPHS) {
    expect(sum(await saved(page, name)), name).toBe(sum(bytes));
  }
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'letter.txt')).toBeVisible();
  await row(page, 'letter.txt').dblclick();
  await expect(page.getByRole('dialog')).toContainText('nobody else reads this');
});

test('the panel says what the server can see, and locking forgets all of it', async ({ page }) => {
  await open(page);
  await page.getByRole('button', { name: 'What the server can see' }).click();
  const panel = page.getByRole('dialog', { name: 'What the server can see' });
  await expect(panel).toContainText('Devices that have changed something');
  await panel.getByRole('button', { name: 'Show the fingerprint of the app' }).click();
  await expect(panel.getByText(server.fingerprintOfApp())).toBeVisible();
  await expect(panel.getByText(/All \d\d+ files are/)).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await panel.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Lock now' }).click();
  await expect(page.getByLabel('Passphrase or recovery key')).toBeVisible();
  await expect(page.getByText('letter.txt')).toHaveCount(0);
  expect(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).not.toMatch(
    /Diary|letter|correct horse/,
  );
  await unlock(page, recoveryKey);
  await expect(row(page, 'letter.txt')).toBeVisible();
});

test('a file of the app that is another one is named', async ({ page }) => {
  await open(page);
  await page.route('**/icon.svg', (route) => lie(route, (bytes) => flipped(bytes)));
  await page.getByRole('button', { name: 'What the server can see' }).click();
  const panel = page.getByRole('dialog', { name: 'What the server can see' });
  await panel.getByRole('button', { name: 'Show the fingerprint of the app' }).click();
  await expect(panel.getByText('Do not type a passphrase here')).toBeVisible();
  await expect(panel.getByRole('listitem')).toHaveText(['icon.svg']);
});

test('it locks by itself when nobody uses it', async ({ page }) => {
  await page.clock.install();
  await open(page);
  await page.clock.runFor(9 * 60_000);
  await expect(row(page, 'letter.txt')).toBeVisible();
  await page.clock.runFor(2 * 60_000);
  await expect(page.getByLabel('Passphrase or recovery key')).toBeVisible();
});

test('flipped bytes of a pack are refused', async ({ page }) => {
  await open(page);
  await page.route('**/packs/*', (route) => lie(route, (bytes) => flipped(bytes)));
  await row(page, 'Bilder').dblclick();
  await row(page, 'größe.bin').click();
  await page.getByRole('button', { name: 'Download' }).click();
  await expect(
    page.getByText('What the server gave is not what your devices have stored.'),
  ).toBeVisible();
  await page.unroute('**/packs/*');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Retry' }).click();
  const content = await readFile(await (await download).path());
  expect(content.equals(PHOTO)).toBe(true);
});

test('a history that was changed, or is that of another workspace, is refused', async ({
  page,
}) => {
  await openLocked(page);
  // What a device has signed is another thing now, so it counts for nothing.
  await page.route('**/log?*', (route) => lie(route, (bytes) => flipped(bytes)));
  await unlock(page);
  await expect(page.getByRole('alert')).toContainText('made by nobody who may write');
  await expect(page.getByText('letter.txt')).toHaveCount(0);
  await page.unroute('**/log?*');
  await page.getByRole('button', { name: 'Lock now' }).click();
  // The hash of what comes before it stands there.
  await page.route('**/log?*', (route) => lie(route, (bytes) => flipped(bytes, 10)));
  await unlock(page);
  await expect(page.getByRole('alert')).toContainText('history does not fit together');
  await expect(page.getByText('letter.txt')).toHaveCount(0);
  await page.unroute('**/log?*');
  await page.getByRole('button', { name: 'Lock now' }).click();
  await page.route('**/genesis', (route) => lie(route, (bytes) => flipped(bytes)));
  await unlock(page);
  await expect(page.getByRole('alert')).toContainText('refused');
});

test('what a device adds shows by itself', async ({ page }) => {
  await open(page);
  server.write('ada', 'Diary', 'new.txt', 'new');
  await expect(row(page, 'new.txt')).toBeVisible();
  expect((await saved(page, 'new.txt')).toString()).toBe('new');
  expect((await ada.workspaces()).map(({ id }) => id)).toEqual([workspace]);
});
