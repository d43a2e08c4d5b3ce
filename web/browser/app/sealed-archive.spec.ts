// A folder of an encrypted workspace is downloaded as one ZIP file, which the browser makes while it opens the files: the server could not.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Download, Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { keys, mouse, type Hand } from '../hands.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const DIARY = 'Diary';
const MODIFIED = Date.UTC(2024, 1, 29, 12, 30, 44) / 1000;
const photo = randomBytes(9 * 1024 * 1024);
/** What is so small that it travels in the log, and in no pack of its own. */
const small = {
  'Trip/note.txt': 'a note\n',
  'Trip/zero.bin': '',
  'Trip/größe 🌍.md': '# Größe\n',
  'Trip/..\\..\\evil.txt': 'stays inside\n',
  'Trip/.._.._evil.txt': 'was called so\n',
};
const sumOf = (text: string) => sum(Buffer.from(text));
const wanted = [
  ['Trip/', ''],
  ['Trip/.._.._evil (2).txt', sumOf('stays inside\n')],
  ['Trip/.._.._evil.txt', sumOf('was called so\n')],
  ['Trip/Day 1/', ''],
  ['Trip/Day 1/photo.bin', sum(photo)],
  ['Trip/größe 🌍.md', sumOf('# Größe\n')],
  ['Trip/note.txt', sumOf('a note\n')],
  ['Trip/nothing in it/', ''],
  ['Trip/zero.bin', sumOf('')],
];

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', DIARY, { 'Trip/Day 1/photo.bin': photo }, ['--sealed']);
  const root = server.sync('ada', DIARY);
  for (const [path, text] of Object.entries(small)) writeFileSync(join(root, path), text);
  mkdirSync(join(root, 'Trip/nothing in it'));
  utimesSync(join(root, 'Trip/note.txt'), MODIFIED, MODIFIED);
  server.sync('ada', DIARY);
});

test.afterAll(() => server.end());

async function open(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'Trip')).toBeVisible();
}

const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });
const asZip = (page: Page) => page.getByRole('button', { name: 'Download as ZIP' });

const SCRIPT = `
import hashlib, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    found = [[one.filename, '' if one.is_dir() else hashlib.sha256(archive.read(one)).hexdigest()] for one in archive.infolist()]
    times = {one.filename: one.date_time for one in archive.infolist()}
    print(json.dumps([found, times]))
`;

interface Unpacked {
  found: [string, string][];
  times: Record<string, number[]>;
}

/** Lets another program read what was saved: the paths with the sums of what is in them, and the times. */
async function unpacked(download: Download): Promise<Unpacked> {
  const saved = await download.path();
  const run = spawnSync('python3', ['-c', SCRIPT, saved], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  const [found, times] = JSON.parse(run.stdout) as [Unpacked['found'], Unpacked['times']];
  return { found, times };
}

for (const [name, handOf] of [
  ['mouse', mouse],
  ['keys', keys],
] as [string, (page: Page) => Hand][]) {
  test(`a folder comes as a ZIP file with everything in it, by ${name}`, async ({ page }) => {
    const hand = handOf(page);
    await open(page);
    await hand.choose('Trip');
    const saving = page.waitForEvent('download');
    await hand.press(asZip(page));
    const download = await saving;
    expect(download.suggestedFilename()).toBe('Trip.zip');
    await expect(tray(page)).toContainText(/9 MiB · Downloaded/);
    const { found, times } = await unpacked(download);
    expect(found).toEqual(wanted);
    expect(times['Trip/note.txt']).toEqual([2024, 2, 29, 12, 30, 44]);
    if (name === 'mouse') await inEveryLook(page, () => expectAccessible(page));
  });
}

test('the folder that is open comes with a button of one line, and all of the workspace with no folder around it', async ({
  page,
}) => {
  await open(page);
  const height = async () => (await page.getByRole('toolbar').boundingBox())?.height;
  const before = await height();
  await row(page, 'Trip').click();
  expect(await height(), 'the rows stay where they are').toBe(before);
  await page.keyboard.press('Enter');
  await expect(row(page, 'note.txt')).toBeVisible();
  await row(page, 'Day 1').dblclick();
  await expect(row(page, 'photo.bin')).toBeVisible();
  let saving = page.waitForEvent('download');
  await asZip(page).click();
  let download = await saving;
  expect(download.suggestedFilename()).toBe('Day 1.zip');
  expect((await unpacked(download)).found).toEqual([
    ['Day 1/', ''],
    ['Day 1/photo.bin', sum(photo)],
  ]);
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'note.txt')).toBeVisible();
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'Trip')).toBeVisible();
  saving = page.waitForEvent('download');
  await asZip(page).click();
  download = await saving;
  expect(download.suggestedFilename()).toBe('Diary.zip');
  expect((await unpacked(download)).found).toEqual(wanted);
});

test('a file that cannot be read ends the download and is named, and nothing is saved', async ({
  page,
}) => {
  await open(page);
  let downloads = 0;
  page.on('download', () => downloads++);
  await page.route('**/packs/**', async (route) => {
    const response = await route.fetch();
    const bytes = await response.body();
    bytes.fill(0);
    await route.fulfill({ response, body: bytes });
  });
  await row(page, 'Trip').click();
  await asZip(page).click();
  await expect(tray(page)).toContainText(
    '“Trip/Day 1/photo.bin” could not be read, so nothing was saved. What the server gave is not what your devices have stored.',
  );
  expect(downloads).toBe(0);
  await expectAccessible(page);
  await page.unroute('**/packs/**');
  const saving = page.waitForEvent('download');
  await tray(page).getByRole('button', { name: 'Retry' }).click();
  expect((await unpacked(await saving)).found).toEqual(wanted);
});
