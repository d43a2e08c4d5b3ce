// The other language: longer words make nothing too wide, and are as easy to read.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let link: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Home', { 'plan.txt': 'first', 'Briefe/an Bob.txt': 'Lieber Bob' });
  server.addWorkspace('ada', 'Diary', { 'brief.txt': 'a' }, ['--sealed']);
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Home')?.id ?? '';
  await ada.putFile(workspace, 'plan.txt', new Blob(['here']));
  server.write('ada', 'Home', 'plan.txt', 'there');
  await ada.delete(workspace, 'Briefe/an%20Bob.txt');
  const [params, body] = [{ workspace }, { path: 'plan.txt', password: 'open sesame' }];
  link = (await ada.call('POST /workspaces/{workspace}/links', { params, body })).secret ?? '';
});

test.afterAll(() => server.end());

/** Signs in as somebody does who has chosen German. */
async function enter(page: Page): Promise<void> {
  await page.addInitScript(() => localStorage.setItem('syncline.language', 'de'));
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.goto(server.url);
  await expect(page.locator('html')).toHaveAttribute('lang', 'de');
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByLabel('Benutzer').fill('ada');
  await page.getByLabel('Passwort').fill(PASSWORD);
  await page.getByLabel('Passwort').press('Enter');
  await expect(page.getByRole('link', { name: 'Home' })).toBeVisible();
}

test('in German nothing is too wide or hard to read either, at a desk and on a phone', async ({
  page,
}) => {
  await enter(page);
  const views: [string, string | RegExp][] = [
    ['', 'Home'],
    [`w/${workspace}`, 'plan.txt'],
    [`t/${workspace}`, 'an Bob.txt'],
    [`c/${workspace}`, /^Beide behalten/],
    [`a/${workspace}`, 'Heute'],
    [`u/${workspace}`, 'Home'],
    [`f/${workspace}`, /abgleichen|Gleichstand/],
    ['sync', 'Ordner im Gleichstand'],
    ['storage', 'Home'],
    ['account', 'ada'],
    ['lab', 'Labor'],
    ['pair', 'Code'],
    [`s/${link}`, 'Passwort'],
  ];
  for (const [address, known] of views) {
    await test.step(address, async () => {
      await page.goto(`${server.url}/#/${address}`);
      await expect(page.getByText(known).filter({ visible: true }).first()).toBeVisible();
      await inEveryLook(page, () => expectAccessible(page));
    });
  }
});

test('so it is in an encrypted workspace', async ({ page }) => {
  await enter(page);
  await page.getByRole('link', { name: /Verschlüsselt/ }).click();
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('textbox').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'brief.txt')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
});
