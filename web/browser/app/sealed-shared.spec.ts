import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { IDENTITY_SECRET, PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

const DIARY = 'Diary';
const LETTER = 'Dear Bob, nobody else reads this.\n';

let server: RealServer;
let workspace: string;
const prints = new Map<string, string>();

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob', 'carol', 'dave']) server.addUser(name);
  server.addWorkspace('ada', DIARY, { 'letter.txt': LETTER }, ['--sealed']);
  for (const name of ['bob', 'carol', 'dave']) prints.set(name, server.fingerprint(name));
  letIn('bob:edit');
  letIn('carol:view');
  letIn('dave:edit');
  workspace = (await (await server.client('ada')).workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

function letIn(rule: string): void {
  const [name = ''] = rule.split(':');
  server.share('ada', DIARY, rule, ['--fingerprint', prints.get(name) ?? '']);
}

async function openLocked(page: Page, user: string): Promise<void> {
  await signIn(page, server, user);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await expect(page.getByLabel('Passphrase of your identity')).toBeFocused();
}

async function unlock(page: Page, secret = IDENTITY_SECRET): Promise<void> {
  await page.getByLabel('Passphrase of your identity').fill(secret);
  await page.keyboard.press('Enter');
}

async function open(page: Page, user: string): Promise<void> {
  await openLocked(page, user);
  await page.getByRole('checkbox', { name: 'ada has told me this id' }).check();
  await unlock(page);
  await expect(row(page, 'letter.txt')).toBeVisible();
}

async function choose(page: Page, name: string, buffer: Buffer): Promise<void> {
  const mimeType = 'application/octet-stream';
  await page.locator('input[type=file]').first().setInputFiles({ name, mimeType, buffer });
}

async function upload(page: Page, name: string, content: Buffer): Promise<void> {
  await choose(page, name, content);
  const lines = page.getByRole('region', { name: 'Files on their way' });
  const line = lines.getByRole('listitem').filter({ hasText: name }).last();
  await expect(line).toContainText('Done', { timeout: 30_000 });
  await expect(row(page, name)).toBeVisible();
}

async function saved(page: Page, name: string): Promise<string> {
  const download = page.waitForEvent('download');
  await row(page, name).click();
  await page.getByRole('button', { name: 'Download' }).click();
  return (await readFile(await (await download).path())).toString();
}

const onDevice = (path: string): Buffer => readFileSync(join(server.sync('ada', DIARY), path));

async function anotherPage(browser: Browser): Promise<Page> {
  return (await browser.newContext()).newPage();
}

test('a member opens it by the passphrase of the identity, compares its id once, reads and writes', async ({
  page,
}) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(`${request.url()} ${request.postData() ?? ''}`));
  await openLocked(page, 'bob');
  await expect(page.getByText(workspace, { exact: true })).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await unlock(page);
  await expect(page.getByLabel('Passphrase of your identity')).toBeVisible();
  await page.getByRole('checkbox', { name: 'ada has told me this id' }).check();
  await unlock(page, PASSWORD);
  await expect(page.getByRole('alert')).toContainText('does not open');
  await unlock(page);
  await expect(row(page, 'letter.txt')).toContainText(`${LETTER.length} B`);
  await expect(page).toHaveTitle('Diary – Syncline');
  expect(await saved(page, 'letter.txt')).toBe(LETTER);
  const photo = randomBytes(6 * 1024 * 1024);
  await upload(page, 'photo.bin', photo);
  expect(onDevice('photo.bin').equals(photo)).toBe(true);
  server.write('ada', DIARY, 'answer.txt', 'Dear Bob\n');
  await expect(row(page, 'answer.txt')).toBeVisible();
  expect(asked.filter((text) => text.includes(IDENTITY_SECRET))).toEqual([]);

  await page.getByRole('button', { name: 'Lock now' }).click();
  await expect(page.getByRole('checkbox')).toHaveCount(0);
  await unlock(page);
  await expect(row(page, 'answer.txt')).toBeVisible();
});

test('who may only look at it sees nothing that would change it', async ({ page }) => {
  await open(page, 'carol');
  await expect(page.getByText('view only')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  const tools = page.getByRole('toolbar').getByRole('button');
  await expect(tools).toHaveText([
    'Download as ZIP',
    'Activity',
    'Trash',
    'What the server can see',
    'Lock now',
  ]);
  await row(page, 'letter.txt').click();
  await expect(tools).toHaveText(['Download', 'Versions', 'What the server can see', 'Lock now']);
  for (const key of ['F2', 'Delete', 'Alt+KeyN']) await page.keyboard.press(key);
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(row(page, 'letter.txt')).toBeVisible();
  expect(await saved(page, 'letter.txt')).toBe(LETTER);
  // The owner lets her write, and the page hears of it.
  letIn('carol:edit');
  server.write('ada', DIARY, 'for-carol.txt', 'write here\n');
  await expect(row(page, 'for-carol.txt')).toBeVisible();
  await expect(tools).toHaveText([
    'Download',
    'Versions',
    'Rename',
    'Move',
    'Copy',
    'Delete',
    'What the server can see',
    'Lock now',
  ]);
  await upload(page, 'of-carol.txt', Buffer.from('of carol\n'));
  expect(onDevice('of-carol.txt').toString()).toBe('of carol\n');
});

test('after somebody was shut out the others go on with the new key, and nobody types anything', async ({
  page,
  browser,
}) => {
  await open(page, 'bob');
  const shutOut = await anotherPage(browser);
  await open(shutOut, 'dave');
  await upload(page, 'before.txt', Buffer.from('of before\n'));
  await expect(row(shutOut, 'before.txt')).toBeVisible();
  server.unshare('ada', DIARY, 'dave');
  server.write('ada', DIARY, 'secret.txt', 'not for Dave\n');
  await expect(row(page, 'secret.txt')).toBeVisible();
  expect(await saved(page, 'secret.txt')).toBe('not for Dave\n');
  expect(await saved(page, 'before.txt')).toBe('of before\n');
  await upload(page, 'after.txt', Buffer.from('of after\n'));
  expect(onDevice('after.txt').toString()).toBe('of after\n');

  await choose(shutOut, 'of-dave.txt', Buffer.from('of dave\n'));
  await expect(shutOut.getByRole('alert').first()).toBeVisible();
  await expect(row(shutOut, 'secret.txt')).toHaveCount(0);
  await shutOut.reload();
  await expect(shutOut.getByRole('alert')).toBeVisible();
  await expect(shutOut.getByLabel('Passphrase of your identity')).toHaveCount(0);
  await shutOut.context().close();
  await expect(row(page, 'of-dave.txt')).toHaveCount(0);
});

test('a server that gives another identity, or keys for somebody else, is refused', async ({
  page,
}) => {
  await openLocked(page, 'bob');
  await page.getByRole('checkbox').check();
  await page.route('**/identity', async (route) => {
    const response = await route.fetch();
    const line = (await response.json()) as { public: string; locked: string };
    await route.fulfill({ response, json: { ...line, public: 'ab'.repeat(64) } });
  });
  await unlock(page);
  await expect(page.getByRole('alert')).toContainText('exchanged there');
  await page.unroute('**/identity');
  await page.route(/objects.envelopes/, async (route) => {
    const response = await route.fetch();
    const body = await response.body();
    body[60] = (body[60] ?? 0) ^ 1;
    await route.fulfill({ response, body });
  });
  await unlock(page);
  await expect(page.getByRole('alert')).toContainText('are not for you');
  await page.unroute(/objects.envelopes/);
  await page.route(/objects.envelopes/, (route) => route.fulfill({ status: 404, body: '' }));
  await unlock(page);
  await expect(page.getByRole('alert')).toContainText('no keys of the workspace for you');
  await page.unroute(/objects.envelopes/);
  await unlock(page);
  await expect(row(page, 'letter.txt')).toBeVisible();
});
