// An encrypted workspace is made in the browser: by mouse and by keys, to the byte beside a device, and on bad days.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { CuttingProxy } from '../cutting.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { looked, watchWire } from '../wire.ts';

const LETTER = 'Dear Bob, nobody else reads this letter.\n';

let server: RealServer;
let client: SynclineClient;
let user: string;
let count = 0;

test.beforeAll(async () => {
  server = await RealServer.start();
});

test.afterAll(() => server.end());

test.beforeEach(async () => {
  user = `ada${++count}`;
  server.addUser(user);
  client = await server.client(user);
});

const key = (page: Page) => page.getByRole('textbox', { name: 'Recovery key' });
const form = (page: Page) => page.getByRole('main');

async function fill(page: Page, name: string, passphrase = PASSWORD): Promise<void> {
  await form(page).getByLabel('Name of the workspace').fill(name);
  await form(page).getByText('Encrypted', { exact: true }).click();
  await form(page).getByLabel('Passphrase', { exact: true }).fill(passphrase);
  await form(page).getByLabel('The same again').fill(passphrase);
}

const create = (page: Page) => page.getByRole('button', { name: 'Create workspace' }).click();

async function keep(page: Page): Promise<void> {
  await page.getByLabel('I have kept it').check();
  await page.getByRole('button', { name: 'Open the workspace' }).click();
  await expect(page.getByText('This folder is empty')).toBeVisible();
}

async function unlock(page: Page, secret: string): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(secret);
  await page.keyboard.press('Enter');
}

async function upload(page: Page, name: string, buffer: Buffer): Promise<void> {
  const mimeType = 'application/octet-stream';
  await page.locator('input[type=file]').first().setInputFiles({ name, mimeType, buffer });
  await expect(row(page, name)).toBeVisible({ timeout: 30_000 });
  const lines = page.getByRole('region', { name: 'Files on their way' });
  await expect(lines.getByRole('listitem').filter({ hasText: name })).toContainText('Done');
}

/** How many locked keys a workspace has at the server. */
async function keysOf(workspace: string): Promise<number> {
  const params = { workspace };
  const query = { prefix: 'keys/' };
  return (await client.call('GET /workspaces/{workspace}/objects', { params, query })).length;
}

test('an encrypted workspace is made by mouse, and a device clones it, to the byte both ways', async ({
  page,
}) => {
  await watchWire(page);
  await signIn(page, server, user);
  await fill(page, 'Diary');
  await inEveryLook(page, () => expectAccessible(page));
  await create(page);
  await expect(
    page.getByRole('heading', { name: 'Keep the recovery key of “Diary”' }),
  ).toBeFocused();
  const recoveryKey = await key(page).inputValue();
  expect(recoveryKey).toMatch(/^([0-9A-Z]{4}-){13}[0-9A-Z]{4}$/);
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('button', { name: 'Open the workspace' }).click();
  await expect(key(page)).toBeVisible();
  await keep(page);

  const photo = randomBytes(3 * 1024 * 1024);
  await upload(page, 'letter.txt', Buffer.from(LETTER));
  await upload(page, 'photo.bin', photo);
  const [made] = await client.workspaces();
  expect(made).toMatchObject({ mode: 'sealed', role: 'owner', name: made?.id });
  const plain = ['Diary', 'Dear Bob', 'letter', 'photo', PASSWORD, recoveryKey];
  const [total, found] = await looked(page, [...plain, photo.subarray(1000, 1064)]);
  expect(total).toBeGreaterThan(photo.length);
  expect(found).toEqual([]);

  const root = server.clone(user, 'Diary');
  expect(readFileSync(join(root, 'letter.txt'), 'utf8')).toBe(LETTER);
  expect(readFileSync(join(root, 'photo.bin')).equals(photo)).toBe(true);
  expect(server.recoveryKey(user, 'Diary')).toBe(recoveryKey);
  server.write(user, 'Diary', 'answer.txt', 'Dear Ada, so do I.\n');
  await row(page, 'answer.txt').dblclick();
  await expect(page.getByRole('dialog')).toContainText('Dear Ada, so do I.');
});

test('one more is made by keys alone, its recovery key saved, copied and printed', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  server.addWorkspace(user, 'Notes', { 'a.txt': 'a' });
  await signIn(page, server, user);
  await page.getByRole('button', { name: 'New workspace' }).press('Enter');
  const dialog = page.getByRole('dialog', { name: 'New workspace' });
  await expect(dialog.getByLabel('Name of the workspace')).toBeFocused();
  await page.keyboard.type('Diary');
  await page.keyboard.press('Tab');
  await expect(dialog.getByRole('radio', { name: 'Not encrypted' })).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await page.keyboard.type('1234567');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toContainText('at least 8 characters');
  await expect(dialog.getByLabel('Passphrase', { exact: true })).toBeFocused();
  await page.keyboard.type('8');
  await page.keyboard.press('Tab');
  await page.keyboard.type('12345679');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toHaveText('The passphrases differ.');
  await inEveryLook(page, () => expectAccessible(page));
  expect(await client.workspaces()).toHaveLength(1);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('12345678');
  await page.keyboard.press('Enter');
  await expect(dialog).toBeHidden();
  await expect(page.getByRole('heading', { name: /Keep the recovery key/ })).toBeFocused();

  const recoveryKey = await key(page).inputValue();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Copied')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(recoveryKey);
  await page.keyboard.press('Tab');
  const saving = page.waitForEvent('download');
  await page.keyboard.press('Enter');
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe('Recovery key of Diary.txt');
  const text = readFileSync(await saved.path(), 'utf8');
  expect(text).toContain('“Diary”');
  expect(text.trimEnd().split('\n').at(-1)).toBe(recoveryKey);
  await page.evaluate(() => {
    const shown = window as unknown as { printed: number };
    shown.printed = 0;
    window.print = () => void shown.printed++;
  });
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => (window as unknown as { printed: number }).printed)).toBe(1);
  await page.emulateMedia({ media: 'print' });
  await expect(page.locator('.paper').getByText(recoveryKey)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Print' })).toBeHidden();
  await page.emulateMedia({ media: 'screen' });
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(page.getByText('This folder is empty')).toBeVisible();

  await page.getByRole('button', { name: 'Lock now' }).press('Enter');
  await unlock(page, '12345679');
  await expect(page.getByRole('alert')).toContainText('does not open the workspace');
  await unlock(page, recoveryKey);
  await expect(page.getByText('This folder is empty')).toBeVisible();
});

test('a workspace whose answers are lost on the way is made once, and can be opened', async ({
  page,
}) => {
  const proxy = await new CuttingProxy(server.url).listen();
  try {
    // Of the first request the page hears; the second one the browser sends again by itself.
    const keys = {
      of: '/objects/keys/',
      method: 'PUT',
      length: 1,
      deed: () => proxy.mend(),
    } as const;
    proxy.cut({ of: '/api/v1/workspaces', length: 1, deed: () => proxy.cut(keys) });
    await signIn(page, proxy, user);
    await fill(page, 'Diary');
    await create(page);
    await expect.poll(() => proxy.cuts).toBe(1);
    proxy.mend();
    await expect(key(page)).toBeVisible({ timeout: 15_000 });
    expect(proxy.cuts).toBe(2);
    const [made, ...more] = await client.workspaces();
    expect(more).toEqual([]);
    expect(await keysOf(made?.id ?? '')).toBe(1);
    await keep(page);
    await upload(page, 'letter.txt', Buffer.from(LETTER));
    expect(readFileSync(join(server.clone(user, 'Diary'), 'letter.txt'), 'utf8')).toBe(LETTER);
  } finally {
    await proxy.end();
  }
});

test('where the server refuses, it is said, and trying again makes the same workspace', async ({
  page,
}) => {
  let isRefused = true;
  await page.route('**/objects/keys/*', async (route) => {
    if (route.request().method() !== 'PUT' || !isRefused) return route.continue();
    const body = { type: 'about:blank', title: '', detail: '', status: 507, code: 'over_quota' };
    const contentType = 'application/problem+json';
    await route.fulfill({ status: 507, contentType, body: JSON.stringify(body) });
  });
  await signIn(page, server, user);
  await fill(page, 'Diary');
  await create(page);
  await expect(page.getByRole('alert')).not.toBeEmpty();
  await expect(page.getByLabel('Name of the workspace')).toBeDisabled();
  await inEveryLook(page, () => expectAccessible(page));
  isRefused = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(key(page)).toBeVisible();
  expect(await client.workspaces()).toHaveLength(1);
  await keep(page);
});

test('a page that goes away before the keys are there leaves a workspace that the next page can open', async ({
  page,
}) => {
  let isHeld = false;
  await page.route('**/objects/keys/*', async (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    isHeld = true;
    await route.abort();
  });
  await signIn(page, server, user);
  await fill(page, 'Diary');
  await create(page);
  await expect.poll(() => isHeld).toBe(true);
  const [made] = await client.workspaces();
  expect(await keysOf(made?.id ?? '')).toBe(0);
  const kept = await page.evaluate(() => JSON.stringify(localStorage));
  expect(kept).toContain(made?.id);
  for (const secret of [PASSWORD, 'Diary']) expect(kept).not.toContain(secret);
  await page.unroute('**/objects/keys/*');
  await page.reload();
  await expect.poll(() => keysOf(made?.id ?? '')).toBe(1);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await unlock(page, PASSWORD);
  await expect(page.getByText('This folder is empty')).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('half-made');
  await upload(page, 'letter.txt', Buffer.from(LETTER));
  expect(readFileSync(join(server.clone(user, 'Diary'), 'letter.txt'), 'utf8')).toBe(LETTER);
});

test('who reloads before the recovery key is kept is warned, and a device shows the key again', async ({
  page,
}) => {
  await signIn(page, server, user);
  await fill(page, 'Diary');
  await create(page);
  const recoveryKey = await key(page).inputValue();
  await expect(page.getByText('shows the key again')).toBeVisible();
  const warned: string[] = [];
  page.on('dialog', async (dialog) => {
    warned.push(dialog.type());
    await dialog.accept();
  });
  await page.reload();
  expect(warned).toEqual(['beforeunload']);
  await unlock(page, PASSWORD);
  await expect(page.getByText('This folder is empty')).toBeVisible();
  server.clone(user, 'Diary');
  expect(server.recoveryKey(user, 'Diary')).toBe(recoveryKey);
});

test('who signs out while an encrypted workspace is made shows its recovery key to nobody', async ({
  page,
}) => {
  const next = `${user}next`;
  server.addUser(next);
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let isHeld = false;
  await page.route('**/objects/keys/*', async (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    const response = await route.fetch();
    isHeld = true;
    await held;
    await route.fulfill({ response });
  });
  await signIn(page, server, user);
  await fill(page, 'Diary');
  await create(page);
  await expect.poll(() => isHeld).toBe(true);
  await page.getByRole('button', { name: 'Sign out' }).click();
  // The page is not loaded anew.
  await page.getByLabel('User').fill(next);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(form(page).getByLabel('Name of the workspace')).toBeVisible();
  const answered = page.waitForResponse(/objects\/keys\//);
  release();
  await answered;
  // Whatever came of that has come when the server has made another one.
  await form(page).getByLabel('Name of the workspace').fill('Plain');
  await create(page);
  await expect(page.getByRole('heading', { name: /Plain/ })).toBeFocused();
  await expect(key(page)).toHaveCount(0);
  const [made, ...more] = await client.workspaces();
  expect([made?.mode, more]).toEqual(['sealed', []]);
  expect(new URL(page.url()).hash).not.toContain(made?.id);
  const ofNext = await (await server.client(next)).workspaces();
  expect(ofNext.map(({ mode }) => mode)).toEqual(['plain']);
});
