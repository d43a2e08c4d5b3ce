// Versions of a file in an encrypted workspace: the browser reads them from the log, and believes no server.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

const DIARY = 'Diary';

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', DIARY, { 'plan.txt': 'one\ntwo\n' }, ['--sealed']);
  server.write('ada', DIARY, 'plan.txt', 'one\nthree\n');
});

test.afterAll(() => server.end());

const pane = (page: Page) => page.getByRole('complementary');
const dialog = (page: Page) => page.getByRole('dialog');
const button = (page: Page, name: string) => pane(page).getByRole('button', { name, exact: true });

async function open(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'plan.txt')).toBeVisible();
}

async function openVersions(page: Page, name: string): Promise<void> {
  await row(page, name).click();
  await page.keyboard.press('Alt+i');
  await expect(pane(page).getByRole('heading', { name })).toBeFocused();
}

const onDevice = (name: string) => readFileSync(join(server.sync('ada', DIARY), name), 'utf8');

test('versions are listed, compared, saved, and brought back to the device', async ({ page }) => {
  await open(page);
  await openVersions(page, 'plan.txt');
  const items = pane(page).getByRole('listitem');
  await expect(items).toHaveCount(2);
  await expect(items.first()).toContainText(/Version 2\s*Current/);
  await expect(items.first()).toContainText(/from \S+\s+· 10 B/);
  await expect(items.last()).toContainText('· 8 B');
  await expect(button(page, 'Restore: Version 2')).toHaveCount(0);
  await inEveryLook(page, () => expectAccessible(page));

  await button(page, 'Compare: Version 1').click();
  await expect(dialog(page).locator('del')).toHaveText(['Removed: two']);
  await expect(dialog(page).locator('ins')).toHaveText(['Added: three']);
  await page.keyboard.press('Escape');
  await expect(button(page, 'Compare: Version 1')).toBeFocused();

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    button(page, 'Download: Version 1').click(),
  ]);
  expect(readFileSync(await download.path(), 'utf8')).toBe('one\ntwo\n');

  await button(page, 'Restore: Version 1').click();
  await expect(items).toHaveCount(3);
  await expect(items.first()).toContainText(/Version 3\s*Current/);
  expect(onDevice('plan.txt')).toBe('one\ntwo\n');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(items).toHaveCount(4);
  expect(onDevice('plan.txt')).toBe('one\nthree\n');

  // What a device does shows itself, and the pane goes as it came.
  server.write('ada', DIARY, 'plan.txt', 'of the device\n');
  await expect(items).toHaveCount(5);
  await expect(items.first()).toContainText('14 B');
  await button(page, 'Close').click();
  await expect(pane(page)).toHaveCount(0);
  await expect(page.getByRole('grid')).toBeFocused();
});

test('of many versions some come at once, and older ones when somebody wants them', async ({
  page,
}) => {
  for (let number = 1; number <= 23; number++) {
    server.write('ada', DIARY, 'diary.txt', 'x'.repeat(number));
  }
  await open(page);
  await openVersions(page, 'diary.txt');
  const items = pane(page).getByRole('listitem');
  await expect(items).toHaveCount(20);
  await expect(items.first()).toContainText('· 23 B');
  await button(page, 'Older versions').click();
  await expect(items).toHaveCount(23);
  await expect(items.last()).toContainText(/Version 1\s.*· 1 B/s);
  await expect(button(page, 'Older versions')).toHaveCount(0);
});

test('a server that gives another entry than the one of a version is found out', async ({
  page,
}) => {
  server.write('ada', DIARY, 'lied.txt', 'first\n');
  server.write('ada', DIARY, 'lied.txt', 'second\n');
  await open(page);
  // The page asks for an entry again, and gets the one before it.
  await page.route(/\/log\?.*length_max=1\b/, async (route) => {
    const asked = new URL(route.request().url());
    asked.searchParams.set('since', String(Number(asked.searchParams.get('since')) - 1));
    await route.fulfill({ response: await route.fetch({ url: asked.href }) });
  });
  await openVersions(page, 'lied.txt');
  await expect(pane(page).getByRole('alert')).toContainText('It was refused.');
  await expect(pane(page).getByRole('listitem')).toHaveCount(0);
});

test('a version whose content a cleanup has removed is listed as such', async ({ page }) => {
  server.write('ada', DIARY, 'cleaned.txt', 'first\n');
  server.write('ada', DIARY, 'cleaned.txt', 'second\n');
  server.cleanUp('ada', DIARY);
  await open(page);
  await openVersions(page, 'cleaned.txt');
  const last = pane(page).getByRole('listitem').last();
  await expect(last).toContainText('content removed by a cleanup');
  await expect(last.getByRole('button')).toHaveCount(0);
  await expect(button(page, 'Download: Version 2')).toBeVisible();
});
