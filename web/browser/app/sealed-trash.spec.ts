import { existsSync, readFileSync, rmSync } from 'node:fs';
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
  const files = {
    'keep.txt': 'keep\n',
    'note.txt': 'a note\n',
    'Letters/2026/x.txt': 'x\n',
    'Letters/to bob.txt': 'Dear Bob\n',
  };
  server.addWorkspace('ada', DIARY, files, ['--sealed']);
});

test.afterAll(() => server.end());

async function unlock(page: Page): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
}

function onDevice(path: string): string | null {
  const found = join(server.sync('ada', DIARY), path);
  return existsSync(found) ? readFileSync(found, 'utf8') : null;
}

const deletedOnDevice = () => server.deleted('ada', DIARY);

test('what a device and the browser have deleted is listed with who did it, and comes back to the device', async ({
  page,
}) => {
  const root = server.sync('ada', DIARY);
  rmSync(join(root, 'Letters'), { recursive: true });
  server.sync('ada', DIARY);
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await unlock(page);
  await row(page, 'note.txt').click();
  await page.keyboard.press('Delete');
  await expect(row(page, 'note.txt')).toHaveCount(0);
  await page.keyboard.press('Alt+t');
  await expect(row(page, 'note.txt')).toContainText(/7 B/);
  await expect(row(page, 'note.txt')).toContainText(/(now|ago) by \S/);
  await expect(row(page, 'Letters')).toContainText(/(now|ago) by \S/);
  await expect(row(page, 'to bob.txt')).toHaveCount(0);
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByLabel('Show what was in deleted folders').check();
  await expect(row(page, 'to bob.txt')).toContainText('Letters');
  await page.getByLabel('Show what was in deleted folders').uncheck();
  expect(onDevice('note.txt')).toBeNull();
  expect(deletedOnDevice()).toEqual([
    'Letters',
    'Letters/2026',
    'Letters/2026/x.txt',
    'Letters/to bob.txt',
    'note.txt',
  ]);

  // The address outlives a reload, and has no name in it.
  await page.reload();
  await unlock(page);
  await row(page, 'Letters').click();
  await page.keyboard.press('Alt+r');
  await expect(page.getByText('“Letters” is back in “Diary”')).toBeVisible();
  await expect(row(page, 'Letters')).toHaveCount(0);
  await expect(row(page, 'note.txt')).toBeVisible();
  expect(onDevice('Letters/2026/x.txt')).toBe('x\n');
  expect(onDevice('Letters/to bob.txt')).toBe('Dear Bob\n');
  expect(deletedOnDevice()).toEqual(['note.txt']);

  // Something else has the name by now: both are there.
  server.write('ada', DIARY, 'note.txt', 'another note\n');
  await row(page, 'note.txt').click();
  await page.getByRole('button', { name: 'Bring back' }).click();
  await expect(page.getByText('Not all of it is back as it was')).toBeVisible();
  await expect(page.getByText('Nothing is deleted')).toBeVisible();
  expect(onDevice('note.txt')).toBe('another note\n');
  expect(deletedOnDevice()).toEqual([]);
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'Letters')).toBeVisible();
  const beside = page.getByRole('row', { name: /note \(conflict/ });
  await expect(beside).toBeVisible();
});
