// What a device and a browser change at once in an encrypted workspace, and who did what there: the browser reads both from the log.

import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { keys, mouse, type Hand } from '../hands.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

const DIARY = 'Diary';

let server: RealServer;

test.beforeEach(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  const files = { 'plan.txt': 'first\n', 'notes.md': 'one\n', 'Letters/old.txt': 'old\n' };
  server.addWorkspace('ada', DIARY, files, ['--sealed']);
});

test.afterEach(() => server.end());

async function unlock(page: Page): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
}

async function open(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await unlock(page);
  await expect(row(page, 'plan.txt')).toBeVisible();
}

/** Changes a file in the browser, and then on the device that has not heard of it. */
async function quarrel(page: Page, name: string, here: string, there: string): Promise<void> {
  const file = { name, mimeType: 'text/plain', buffer: Buffer.from(here) };
  await page.locator('input[type=file]').first().setInputFiles(file);
  const line = page.getByRole('region', { name: 'Files on their way' }).getByRole('listitem');
  await line.getByRole('button', { name: 'Replace' }).click();
  await expect(line.filter({ hasText: name })).toContainText('Done');
  server.write('ada', DIARY, name, there);
}

/** Names and texts of the top folder on the device. */
function onDevice(): Record<string, string> {
  const root = server.sync('ada', DIARY);
  const files = readdirSync(root, { withFileTypes: true }).filter((one) => one.isFile());
  const names = files.map(({ name }) => name).sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(root, name), 'utf8')]));
}

const card = (page: Page, text: string) => page.getByRole('listitem').filter({ hasText: text });
const badge = (page: Page) => page.getByRole('link', { name: '1 conflict to decide' });
const keep = (page: Page, label: RegExp) => page.getByRole('button', { name: label });

test('by mouse: a conflict shows itself, the copy of the device is kept, and taken back', async ({
  page,
}) => {
  await open(page);
  await expect(page.getByRole('link', { name: /to decide/ })).toHaveCount(0);
  await quarrel(page, 'plan.txt', 'of the browser\n', 'of the device\n');
  await badge(page).click();
  await expect(page).toHaveURL(/\/conflicts$/);
  const one = card(page, 'plan.txt');
  await expect(one).toContainText('15 B');
  await expect(one).toContainText('14 B');
  await expect(one.getByText(/by you, on/)).toHaveCount(2);
  await inEveryLook(page, () => expectAccessible(page));

  await one.getByRole('button', { name: /^Preview: plan \(conflict/ }).click();
  await expect(page.getByText('of the device', { exact: true })).toBeVisible();
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByText('of the browser', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');

  await keep(page, /^Keep this one: plan \(conflict/).click();
  await expect(page.getByText('“plan.txt” is kept.')).toBeVisible();
  await expect(page.getByText('No conflicts')).toBeVisible();
  await expect(page.getByRole('link', { name: /to decide/ })).toHaveCount(0);
  expect(onDevice()).toEqual({ 'notes.md': 'one\n', 'plan.txt': 'of the device\n' });

  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByText('“plan.txt” is a conflict again')).toBeVisible();
  await expect(badge(page)).toBeVisible();
  expect(Object.values(onDevice()).sort()).toEqual([
    'of the browser\n',
    'of the device\n',
    'one\n',
  ]);

  // Who has no keys sees no number and no names, and is led back behind the unlock page.
  await page.reload();
  await expect(page.getByLabel('Passphrase or recovery key')).toBeVisible();
  await expect(page.getByRole('link', { name: /to decide/ })).toHaveCount(0);
  await unlock(page);
  await expect(card(page, 'plan.txt')).toBeVisible();
});

test('by keys alone: both are kept under a name of its own, and what somebody else decides first is lost without loss', async ({
  page,
}) => {
  const hand: Hand = keys(page);
  await open(page);
  await quarrel(page, 'notes.md', 'notes here\n', 'notes there\n');
  await expect(badge(page)).toBeVisible();
  await page.getByRole('grid').focus();
  await page.keyboard.press('Alt+k');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();

  // The page hears of nothing, and decides about what it knows.
  await page.route('**/events', (route) => route.abort());
  await page.reload();
  await unlock(page);
  await expect(card(page, 'notes.md')).toBeVisible();
  server.write('ada', DIARY, 'notes.md', 'newer\n');
  await hand.press(keep(page, /^Keep this one: notes \(conflict/));
  await expect(card(page, 'notes.md').getByRole('alert')).toContainText('Somebody else changed it');
  expect(Object.values(onDevice()).sort()).toEqual(['first\n', 'newer\n', 'notes there\n'].sort());
  await page.unroute('**/events');
  await page.reload();
  await unlock(page);

  await hand.press(keep(page, /^Keep both: notes/));
  const another = page.getByLabel('Keep both, this one as');
  await expect(another).toBeFocused();
  await hand.retype(another, 'plan.txt');
  await hand.submit(page.getByRole('button', { name: 'Keep both', exact: true }));
  await expect(card(page, 'notes.md').getByRole('alert')).not.toBeEmpty();
  await hand.retype(another, 'notes of the device.md');
  await hand.submit(page.getByRole('button', { name: 'Keep both', exact: true }));
  await expect(page.getByText('Both are kept, one as “notes of the device.md”')).toBeVisible();
  await expect(page.getByText('No conflicts')).toBeVisible();
  expect(onDevice()).toEqual({
    'notes.md': 'newer\n',
    'notes of the device.md': 'notes there\n',
    'plan.txt': 'first\n',
  });
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'notes of the device.md')).toBeVisible();
});

test('what a device does is told as it happens, and leads to the file, its versions and the trash', async ({
  page,
}) => {
  await open(page);
  await page.getByRole('grid').focus();
  await page.keyboard.press('Alt+a');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  const list = page.getByRole('region', { name: 'Activity in Diary' });
  const lines = list.locator('li.change');
  await expect(page.getByRole('heading', { name: 'Today' })).toBeVisible();
  await expect(lines.filter({ hasText: 'old.txt' })).toContainText(/Added\s*old\.txt\s*Letters/);
  const root = server.sync('ada', DIARY);
  server.write('ada', DIARY, 'from the device.txt', 'device\n');
  await expect(lines.first()).toContainText(/Added\s*from the device\.txt\s*Diary/);
  server.write('ada', DIARY, 'plan.txt', 'second\n');
  await expect(lines.first()).toContainText(/Changed\s*plan\.txt\s*Diary/);
  renameSync(join(root, 'plan.txt'), join(root, 'the plan.txt'));
  server.sync('ada', DIARY);
  await expect(lines.first()).toContainText(/Renamed\s*the plan\.txt\s*Diary · was “plan\.txt”/);
  rmSync(join(root, 'from the device.txt'));
  server.sync('ada', DIARY);
  await expect(lines.first()).toContainText(/Deleted\s*from the device\.txt\s*In the trash/);
  await expect(list.getByText(/^You, on /).first()).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));

  const hand = mouse(page);
  const renamed = lines.filter({ hasText: 'Renamed' });
  await hand.press(renamed.getByRole('button', { name: 'the plan.txt', exact: true }));
  await expect(page.getByText('second', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');
  // Where it closes, it gives the focus back, also to who is elsewhere by then.
  await expect(page.getByRole('dialog')).toBeHidden();
  await keys(page).press(renamed.getByRole('button', { name: /^Versions of/ }));
  await expect(page.getByText('Version 3')).toBeVisible();
  await keys(page).press(page.getByRole('button', { name: 'Restore: Version 1' }));
  await expect(lines.first()).toContainText(/Changed\s*the plan\.txt/);
  expect(onDevice()).toEqual({ 'notes.md': 'one\n', 'the plan.txt': 'first\n' });
  await lines.filter({ hasText: 'Deleted' }).getByRole('link').click();
  await expect(row(page, 'from the device.txt')).toBeVisible();
  await page.goBack();
  await lines
    .filter({ hasText: 'old.txt' })
    .getByRole('button', { name: 'old.txt', exact: true })
    .press('Enter');
  await expect(page.getByText('old', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'Letters')).toBeVisible();
});

test('a long history comes in pages', async ({ page }) => {
  const root = server.sync('ada', DIARY);
  await open(page);
  const log = page.waitForResponse(/\/log/);
  await page.getByRole('button', { name: 'Activity' }).click();
  await log;
  const lines = page.locator('li.change');
  const before = await lines.count();
  for (let number = 0; number < 52; number++) server.write('ada', DIARY, 'plan.txt', `${number}\n`);
  expect(root).not.toBe('');
  await page.reload();
  await unlock(page);
  await expect(lines).toHaveCount(50);
  await page.getByRole('button', { name: 'Show older' }).press('Enter');
  await expect(page.getByRole('button', { name: 'Show older' })).toHaveCount(0);
  await expect.poll(() => lines.count()).toBeGreaterThanOrEqual(52 + before);
});
