// Files and folders of an encrypted workspace are copied in the browser: nothing of their content moves, and a device has the same.

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { looked, watchWire } from '../wire.ts';

const DIARY = 'Diary';
const photo = randomBytes(3 * 1024 * 1024);

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  const files = {
    'Trip/Day 1/photo.bin': photo,
    'Trip/note.txt': 'a note\n',
    'Box/old.txt': 'old\n',
  };
  server.addWorkspace('ada', DIARY, files, ['--sealed']);
});

test.afterAll(() => server.end());

async function open(page: Page): Promise<void> {
  await watchWire(page);
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'Trip')).toBeVisible();
}

function onDevice(path: string): Buffer | null {
  const file = join(server.sync('ada', DIARY), path);
  return existsSync(file) ? readFileSync(file) : null;
}

const done = (page: Page, text: string) => page.getByText(text);

test('a folder is copied into another one by mouse, with no content sent, and a copy is taken back', async ({
  page,
}) => {
  await open(page);
  const [before] = await looked(page, []);
  await row(page, 'Trip').click();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Copy “Trip”' });
  await expect(dialog).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await dialog.getByText('Box').click();
  await dialog.getByRole('button', { name: 'Copy to “Box”' }).click();
  await expect(done(page, 'copied to “Box”')).toBeVisible();
  expect((await looked(page, []))[0] - before).toBeLessThan(50_000);
  expect(onDevice('Box/Trip/Day 1/photo.bin')?.equals(photo)).toBe(true);
  expect(onDevice('Box/Trip/note.txt')?.toString()).toBe('a note\n');
  expect(onDevice('Trip/Day 1/photo.bin')?.equals(photo)).toBe(true);

  server.write('ada', DIARY, 'Trip/note.txt', 'changed\n');
  expect(onDevice('Box/Trip/note.txt')?.toString()).toBe('a note\n');
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+z');
  await expect(done(page, 'Undone')).toBeVisible();
  expect(onDevice('Box/Trip/note.txt')).toBeNull();
  expect(onDevice('Box/old.txt')?.toString()).toBe('old\n');
  expect(onDevice('Trip/note.txt')?.toString()).toBe('changed\n');
});

test('a file is copied beside itself by keys, and a copy that a device has changed is not taken back', async ({
  page,
}) => {
  await open(page);
  await row(page, 'Trip').dblclick();
  await expect(row(page, 'note.txt')).toBeVisible();
  const height = async () => (await page.getByRole('toolbar').boundingBox())?.height;
  const before = await height();
  await page.getByRole('grid').focus();
  await page.keyboard.type('note');
  await page.keyboard.press('Space');
  await expect(page.getByRole('button', { name: 'Versions' })).toBeVisible();
  expect(await height(), 'the rows stay where they are').toBe(before);
  await page.keyboard.press('Alt+c');
  const dialog = page.getByRole('dialog', { name: 'Copy “note.txt”' });
  await expect(dialog).toBeVisible();
  await dialog.getByRole('button', { name: 'Copy to “Trip”' }).press('Enter');
  await expect(row(page, 'note (2).txt')).toBeVisible();
  const text = onDevice('Trip/note.txt')?.toString() ?? '';
  expect(onDevice('Trip/note (2).txt')?.toString()).toBe(text);
  server.write('ada', DIARY, 'Trip/note (2).txt', 'of the device\n');
  await expect(row(page, 'note (2).txt')).toContainText('14 B');
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+z');
  await expect(page.getByRole('alert').filter({ hasText: /.+/ })).toBeVisible();
  expect(onDevice('Trip/note (2).txt')?.toString()).toBe('of the device\n');
});
