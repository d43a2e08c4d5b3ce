import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import {
  another,
  ask,
  boxesOf,
  byDevice,
  DIGITS,
  digitsOn,
  enter,
  expectUntold,
  requestsOf,
  saved,
} from '../pairing.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

const LETTER = 'Dear Bob, nobody else reads this.\n';

let server: RealServer;
let ada: SynclineClient;
let diary: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Diary', { 'letter.txt': LETTER }, ['--sealed']);
  ada = await server.client('ada');
  diary = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

const boxes = () => boxesOf(ada, diary);
const hosting = (page: Page) => page.getByRole('dialog', { name: 'Let a device in' });

async function openDiary(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'letter.txt')).toBeVisible();
}

/** Shows a code; returns it. */
async function show(page: Page, secret = PASSWORD): Promise<string> {
  const dialog = hosting(page);
  await dialog.getByLabel('Passphrase or recovery key').fill(secret);
  await dialog.getByRole('button', { name: 'Show a code' }).click();
  return dialog.getByLabel('Code', { exact: true }).inputValue();
}

async function letIn(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Let a device in' }).click();
  return show(page);
}

test('a device is let in by a browser, and reads and writes', async ({ page }) => {
  const asked = requestsOf(page);
  await openDiary(page);
  await page.getByRole('button', { name: 'Let a device in' }).click();
  const dialog = hosting(page);
  await inEveryLook(page, () => expectAccessible(page));
  await dialog.getByLabel('Passphrase or recovery key').fill('not this one');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toContainText('does not open the workspace');
  await expect.poll(boxes).toEqual([]);
  const code = await show(page);
  await expect(dialog.getByRole('img', { name: /QR code/ })).toBeVisible();
  await expect(dialog.getByText('for 10 minutes')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  server.signInDevice('ada', 'tablet');
  const folder = server.folderOf('tablet', 'Diary');
  const guest = server.atTerminal('tablet', ['clone', diary, folder, '--pair'], code);
  const digits = await guest.waitFor(DIGITS);
  guest.type('y\n');
  await expect(digitsOn(page)).toHaveText(digits);
  await inEveryLook(page, () => expectAccessible(page));
  await dialog.getByRole('button', { name: 'let it in' }).click();
  await expect(dialog.getByText(/is in\.$/)).toBeVisible({ timeout: 30_000 });
  expect(await guest.ended()).toBe(0);
  expect(readFileSync(join(folder, 'letter.txt'), 'utf8')).toBe(LETTER);
  await expect.poll(boxes).toEqual([]);
  expectUntold(asked, code);
  await dialog.getByRole('button', { name: 'Close' }).click();
  server.write('tablet', 'Diary', 'answer.txt', 'from the tablet');
  await expect(row(page, 'answer.txt')).toBeVisible();
});

test('a phone that opens the QR code signs in, and is let in by the browser', async ({
  page,
  browser,
}) => {
  await openDiary(page);
  const code = await letIn(page);
  const phone = await another(browser);
  const asked = requestsOf(phone);
  await phone.goto(`${server.url}/#/pair/${code}`);
  await expect(phone.getByLabel('User')).toBeVisible();
  expect(phone.url()).toBe(`${server.url}/#/pair`);
  await phone.getByLabel('User').fill('ada');
  await phone.getByLabel('Password').fill(PASSWORD);
  await phone.getByRole('button', { name: 'Sign in' }).click();
  await expect(digitsOn(phone)).toBeVisible();
  expect(await boxes()).toEqual(['offer']);
  await ask(phone);
  await expect(digitsOn(page)).toHaveText((await digitsOn(phone).textContent()) ?? '');
  await hosting(page).getByRole('button', { name: 'let it in' }).click();
  await expect(row(phone, 'letter.txt')).toBeVisible();
  expect(await saved(phone, 'letter.txt')).toBe(LETTER);
  await expect(hosting(page).getByText(/is in\.$/)).toBeVisible();
  expectUntold(asked, code);
  await expect.poll(boxes).toEqual([]);
  // Nor does the way back lead to it.
  await phone.goBack();
  expect(phone.url()).not.toContain(code);
  await phone.context().close();
});

test('digits that differ let nobody in, and the other browser hears of it', async ({
  page,
  browser,
}) => {
  await openDiary(page);
  const code = await letIn(page);
  const other = await another(browser);
  await byDevice(other, server);
  await enter(other, code);
  await ask(other);
  await expect(digitsOn(page)).toBeVisible();
  await hosting(page).getByRole('button', { name: 'They differ' }).click();
  await expect(hosting(page).getByRole('alert')).toHaveText(/Nobody was let in/);
  await expect(other.getByRole('alert')).toHaveText(/The other device has left/);
  await expect.poll(boxes).toEqual([]);
  await enter(other, code);
  await expect(other.getByRole('alert')).toHaveText(/No device waits for this code/);
  await other.context().close();
});

test('the boxes end with the window, with the page, with the guest, and after ten minutes', async ({
  page,
  browser,
}) => {
  await page.clock.install();
  await openDiary(page);
  await letIn(page);
  await expect.poll(boxes).toEqual(['offer']);
  await hosting(page).getByRole('button', { name: 'Cancel' }).click();
  await expect(hosting(page)).toHaveCount(0);
  await expect.poll(boxes).toEqual([]);

  const code = await letIn(page);
  const guest = await another(browser);
  await byDevice(guest, server);
  await enter(guest, code);
  await ask(guest);
  await page.clock.runFor(2000);
  await expect(digitsOn(page)).toBeVisible();
  await guest.goto('about:blank');
  await expect.poll(boxes).toEqual(['offer']);
  await page.clock.runFor(2000);
  await expect(hosting(page).getByRole('alert')).toHaveText(/The other device has left/);
  await expect.poll(boxes).toEqual([]);
  await guest.context().close();

  await show(page);
  await page.clock.runFor(9 * 60_000);
  await expect(hosting(page).getByText('one more minute')).toBeVisible();
  // Somebody is there, so the workspace stays open.
  await page.keyboard.press('Shift');
  await page.clock.runFor(61_000);
  await expect(hosting(page).getByRole('alert')).toHaveText(/Nobody has answered in time/);
  await expect.poll(boxes).toEqual([]);

  // Nobody is: what is locked lets nobody in.
  await show(page);
  await page.clock.runFor(8 * 60_000);
  await expect.poll(boxes).toEqual(['offer']);
  await page.clock.runFor(3 * 60_000);
  await expect(page.getByRole('button', { name: 'Unlock' })).toBeVisible();
  await expect.poll(boxes).toEqual([]);
});

test('a page that goes away takes its boxes with it', async ({ page }) => {
  await openDiary(page);
  await letIn(page);
  await expect.poll(boxes).toEqual(['offer']);
  await page.goto('about:blank');
  await expect.poll(boxes).toEqual([]);
});

test('a request that was damaged or exchanged is refused', async ({ page, browser }) => {
  await openDiary(page);
  const code = await letIn(page);
  await page.route('**/pairing/*/request', async (route) => {
    const response = await route.fetch();
    const body = await response.body();
    if (response.ok()) body[100] = (body[100] ?? 0) ^ 1;
    await route.fulfill({ response, body });
  });
  const other = await another(browser);
  await byDevice(other, server);
  await enter(other, code);
  await ask(other);
  await expect(hosting(page).getByRole('alert')).toHaveText(/It was refused/);
  await expect(other.getByRole('alert')).toHaveText(/The other device has left/);
  await expect.poll(boxes).toEqual([]);
  await other.context().close();
});
