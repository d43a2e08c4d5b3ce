// Two versions of a file compared: texts line by line, pictures side by side; by mouse and by keys.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row } from '../steps.ts';
import { expect, test } from '../test.ts';

/** A line that would be an element, were it taken for one. */
const HOSTILE = '<img src=x onerror="window.broken=1">{{broken}}';
const LINES = Array.from({ length: 60 }, (_, index) => `line ${String(index + 1)}`);

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Notes', { 'plan.txt': 'x', 'noise.bin': 'x' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
  const put = (name: string, body: BlobPart) => ada.putFile(workspace, name, new Blob([body]));
  await put('plan.txt', `${LINES.join('\n')}\n`);
  await put('plan.txt', `${LINES.with(29, HOSTILE).toSpliced(40, 2).join('\n')}\n`);
  const point =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  for (const name of ['point.png', 'broken.txt']) await put(name, Buffer.from(point, 'base64'));
  await put('point.png', Buffer.concat([Buffer.from(point, 'base64'), Buffer.from('more')]));
  await put('broken.txt', Buffer.from([0, 1, 2]));
  await put('noise.bin', 'y');
  await put('long.txt', 'a');
  await put('long.txt', Array.from({ length: 1500 }, (_, at) => `new ${String(at)}`).join('\n'));
});

test.afterAll(() => server.end());

const dialog = (page: Page) => page.getByRole('dialog');
const pane = (page: Page) => page.getByRole('complementary');

async function openVersions(page: Page, name: string): Promise<void> {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, name).click();
  await page.keyboard.press('Alt+i');
  await expect(pane(page).getByRole('heading', { name })).toBeFocused();
}

test('what differs between two texts is shown, and what is the same is folded', async ({
  page,
}) => {
  await openVersions(page, 'plan.txt');
  await expect(pane(page).getByRole('button', { name: 'Compare: Version 3' })).toHaveCount(0);
  await pane(page).getByRole('button', { name: 'Compare: Version 2' }).click();
  await expect(dialog(page).getByRole('status')).toHaveText('From Version 2 to Version 3.');
  const went = dialog(page).locator('del');
  await expect(went).toHaveText(['Removed: line 30', 'Removed: line 41', 'Removed: line 42']);
  await expect(dialog(page).locator('ins')).toHaveText([`Added: ${HOSTILE}`]);
  await expect(dialog(page).getByText('line 27', { exact: true })).toBeVisible();
  await expect(dialog(page).getByText('line 26', { exact: true })).toHaveCount(0);
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  await inEveryLook(page, () => expectAccessible(page));
  await dialog(page).getByRole('button', { name: 'Show 26 lines that are the same' }).click();
  await expect(dialog(page).getByText('line 1', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toHaveCount(0);
  await expect(pane(page).getByRole('button', { name: 'Compare: Version 2' })).toBeFocused();
});

test('a thousand lines that differ come at once, and more when somebody wants them', async ({
  page,
}) => {
  await openVersions(page, 'long.txt');
  await pane(page).getByRole('button', { name: 'Compare: Version 1' }).click();
  await expect(dialog(page).locator('ins')).toHaveCount(999);
  await dialog(page).getByRole('button', { name: 'Show more, 501 are left' }).click();
  await expect(dialog(page).locator('ins')).toHaveCount(1500);
});

test('versions of a picture stand side by side, by keys alone', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'point.png').focus();
  await page.keyboard.type('point');
  await page.keyboard.press('Alt+i');
  const button = pane(page).getByRole('button', { name: 'Compare: Version 1' });
  await expect(button).toBeVisible();
  for (
    let step = 0;
    step < 9 && !(await button.evaluate((it) => it === document.activeElement));
    step++
  ) {
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  for (const side of ['Version 1', 'Version 2']) {
    const shown = dialog(page).getByRole('region', { name: side }).getByRole('img');
    await expect(shown).toHaveJSProperty('complete', true);
    expect(await shown.evaluate((it: HTMLImageElement) => it.naturalWidth)).toBe(1);
  }
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('Escape');
  await expect(button).toBeFocused();
});

test('what is no text in spite of its name is said, and what no page shows is not compared', async ({
  page,
}) => {
  await openVersions(page, 'broken.txt');
  await pane(page).getByRole('button', { name: 'Compare: Version 1' }).click();
  await expect(dialog(page).getByRole('status').first()).toContainText('differ too much');
  await page.keyboard.press('Escape');
  await row(page, 'noise.bin').click();
  await page.keyboard.press('Alt+i');
  await expect(pane(page).getByRole('button', { name: 'Restore: Version 1' })).toBeVisible();
  await expect(pane(page).getByRole('button', { name: /Compare/ })).toHaveCount(0);
});
