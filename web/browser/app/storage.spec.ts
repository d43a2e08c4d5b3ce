// What a workspace takes: figures of files that are known, live, as charts and as tables, and by keys.

import { randomBytes } from 'node:crypto';
import type { Locator } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const user of ['ada', 'bob']) server.addUser(user);
  server.addWorkspace('ada', 'Home', { 'plan.txt': 'x'.repeat(2048), 'gone.md': 'gone' });
  server.addWorkspace('ada', 'Diary', { 'a.txt': 'a' }, ['--sealed']);
  server.share('ada', 'Home', 'bob:view');
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Home')?.id ?? '';
  const noise = new Uint8Array(randomBytes(300 * 1024));
  await ada.putFile(workspace, 'sea.JPG', new Blob([noise]));
  await ada.putFile(workspace, 'the%20same.png', new Blob([noise]));
  await ada.delete(workspace, 'gone.md');
});

test.afterAll(() => server.end());

test('what files take is shown by kind and by day, is live, and is a table by a switch', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Home');
  await page.getByRole('button', { name: 'Storage' }).press('Enter');
  await expect(page).toHaveTitle('Storage – Home – Syncline');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  const kinds = page.getByRole('table', { name: 'Files by kind' });
  const line = (name: string) => kinds.getByRole('row', { name });
  await expect(line('Pictures 2 600 KiB')).toHaveCount(1);
  await expect(line('Text and code 1 2 KiB')).toHaveCount(1);
  await expect(line('Trash 1 4 B')).toHaveCount(1);
  await expect(kinds.getByRole('row')).toHaveCount(4);

  // Two equal pictures are kept once, and the text takes next to nothing.
  const saving = page.getByRole('region', { name: 'What deduplication and compression save' });
  await expect(saving).toContainText('What is kept takes 50% less than the files and the trash.');
  await expect(saving.getByRole('row', { name: 'Files and trash 602 KiB' })).toHaveCount(1);
  await expect(saving.getByRole('row', { name: /^Each piece once.* 302 KiB$/ })).toHaveCount(1);

  const days = page.getByRole('table', { name: 'New data by day' });
  await expect(days.getByRole('row')).toHaveCount(31);
  await expect(days.getByRole('row').last()).toContainText('30');
  const canvas = page.locator('main canvas');
  await expect(canvas).toBeVisible();

  await ada.putFile(workspace, 'song.mp3', new Blob([new Uint8Array(randomBytes(200 * 1024))]));
  await expect(line('Audio 1 200 KiB')).toHaveCount(1);
  await expect(saving.getByRole('row', { name: 'Files and trash 802 KiB' })).toHaveCount(1);
  await expect(days.getByRole('row').last()).toContainText('50');

  // Who sees it has the charts, and the tables by a switch.
  await expect(kinds).not.toBeInViewport();
  await page.getByRole('button', { name: 'Show as table: Files by kind' }).press('Enter');
  await expect(kinds).toBeInViewport();
  await page.getByRole('button', { name: 'Show as table: New data by day' }).press('Enter');
  await expect(canvas).toHaveCount(0);
  await inEveryLook(page, () => expectAccessible(page));

  await page.getByRole('link', { name: 'All workspaces' }).press('Enter');
  await expect(page).toHaveTitle('Storage – Syncline');
  await expect(page.getByText('There is no limit.')).toBeVisible();
  await page.getByRole('link', { name: /^Home/ }).press('Enter');
  await expect(line('Audio 1 200 KiB')).toHaveCount(1);
  await page.keyboard.press('Alt+ArrowUp');
  await expect(page.getByRole('grid')).toBeFocused();
});

/** The colours of a picture that are not rare, as hexadecimal numbers. */
async function coloursOf(canvas: Locator): Promise<string[]> {
  return canvas.evaluate((element: HTMLCanvasElement) => {
    const drawn = element.getContext('2d');
    if (!drawn) throw new Error('it is drawn on');
    const { data } = drawn.getImageData(0, 0, element.width, element.height);
    const seen = new Map<string, number>();
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] !== 255) continue;
      const colour = [...data.slice(at, at + 3)].join();
      seen.set(colour, (seen.get(colour) ?? 0) + 1);
    }
    return [...seen].filter(([, count]) => count > 200).map(([colour]) => colour);
  });
}

test('the chart has the colours of the theme, and the width of the page', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  await openWorkspace(page, server, 'ada', 'Home');
  await page.goto(`${server.url}/#/u/${workspace}`);
  const canvas = page.locator('main canvas');
  await expect(canvas).toBeVisible();
  await expect.poll(() => coloursOf(canvas)).toContain('37,89,196');
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(() => coloursOf(canvas)).toContain('141,180,255');
  const widthOf = async () => (await canvas.boundingBox())?.width ?? 0;
  expect(await widthOf()).toBeGreaterThan(600);
  await page.setViewportSize({ width: 390, height: 780 });
  await expect.poll(widthOf).toBeLessThanOrEqual(390 - 32);
  await expect.poll(widthOf).toBeGreaterThan(300);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Light').check();
  await expect.poll(() => coloursOf(canvas)).toContain('37,89,196');
  await page.getByLabel('Language').selectOption('de');
  await expect(page.getByRole('heading', { name: 'Neue Daten nach Tag' })).toBeVisible();
});

test('of an encrypted workspace it is shown what the server sees, and quotas as they are', async ({
  page,
}) => {
  server.limit('ada', '10MiB');
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /stored$/ }).click();
  await expect(page.getByText(/of 10 MiB stored\.\s+9\.\d+ MiB are left\./)).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('link', { name: /^Encrypted workspace/ }).click();
  await expect(page.getByText('This workspace is encrypted. The server sees')).toBeVisible();
  await expect(page.getByRole('table', { name: 'New data by day' }).getByRole('row')).toHaveCount(
    31,
  );
  await expect(page.getByRole('table', { name: 'Files by kind' })).toHaveCount(0);
});

test('nothing stored, no way to the server, and no such workspace are said', async ({ page }) => {
  server.limit('ada', 'none');
  const made = await ada.call('POST /workspaces', { body: { name: 'Empty' } });
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: 'Empty' })).toBeVisible();
  await page.goto(`${server.url}/#/u/${made.id}`);
  await expect(page.getByRole('heading', { name: 'Nothing is stored yet' })).toBeVisible();
  await ada.putFile(made.id, 'a.zip', new Blob(['zip']));
  await expect(page.getByRole('row', { name: 'Archives 1 3 B' })).toHaveCount(1);
  await page.goto(`${server.url}/#/u/${'0'.repeat(32)}`);
  await expect(page.getByRole('alert')).toContainText('It is not there any more.');
  await page.route('**/usage', (route) => route.abort());
  await page.goto(`${server.url}/#/u/${workspace}`);
  await expect(page.getByRole('alert')).toContainText('cannot be reached');
  await page.unroute('**/usage');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('table', { name: 'Files by kind' })).toHaveCount(1);
});

test('what this browser sends and receives is counted by day, and goes with the session', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Home');
  const buffer = randomBytes(3 * 1024 * 1024);
  const picker = page.locator('input[type=file]:not([webkitdirectory])');
  await picker.setInputFiles({ name: 'noise.bin', mimeType: '', buffer });
  await expect(row(page, 'noise.bin')).toBeVisible();
  const saving = page.waitForEvent('download');
  await row(page, 'noise.bin').click();
  await page.getByRole('button', { name: 'Download', exact: true }).press('Enter');
  await (await saving).path();
  await page.goto(`${server.url}/#/storage`);
  const table = page.getByRole('table', { name: 'Traffic of this browser' });
  await expect(table.getByRole('row')).toHaveCount(31);
  // Less than a tenth is said beside the file.
  const today = table.getByRole('row', { name: /3(\.[0-2]\d*)? MiB 3(\.[0-2]\d*)? MiB$/ });
  await expect(today).toHaveCount(1);
  await expect(page.locator('main canvas')).toHaveCount(2);
  await inEveryLook(page, () => expectAccessible(page));
  await page.reload();
  await expect(today).toHaveCount(1);
  const kept = () => page.evaluate(() => sessionStorage.getItem('syncline.traffic'));
  expect(await kept()).not.toBeNull();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  expect(await kept()).toBeNull();
  // Another session begins with nothing.
  await openWorkspace(page, server, 'ada', 'Home');
  await page.goto(`${server.url}/#/storage`);
  await expect(table.getByRole('row')).toHaveCount(31);
  await expect(today).toHaveCount(0);
});
