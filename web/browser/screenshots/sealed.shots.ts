// What is done in encrypted workspaces: made, kept in sync with a folder, decided, and told, in light and dark, and at the width of a phone.

import { edit, givePicked } from '../picked.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { shoot } from './shoot.ts';

const FILES = { 'plan.txt': 'Leave in May\n', 'notes.md': '# Notes', 'Letters/landlord.txt': 'Hi' };

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'new']) server.addUser(name);
  server.addWorkspace('ada', 'Diary', FILES, ['--sealed']);
});

test.afterAll(() => server.end());

test('an encrypted workspace is made, and its recovery key shown', async ({ page }) => {
  await signIn(page, server, 'new');
  const form = page.getByRole('main');
  await form.getByLabel('Name of the workspace').fill('Diary');
  await form.getByText('Encrypted', { exact: true }).click();
  await form.getByLabel('Passphrase', { exact: true }).fill(PASSWORD);
  await form.getByLabel('The same again').fill(PASSWORD);
  await shoot(page, 'sealed-new');
  await page.getByRole('button', { name: 'Create workspace' }).click();
  await expect(page.getByRole('heading', { name: /^Keep the recovery key/ })).toBeVisible();
  await shoot(page, 'sealed-recovery-key');
});

test('a folder in sync, a conflict, and what happened', async ({ page }) => {
  await givePicked(page);
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'plan.txt')).toBeVisible();
  const address = page.url();
  await edit(page, 'plan.txt', 'Leave in June\n');
  await page.getByRole('button', { name: 'Keep in sync' }).click();
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await page.getByRole('button', { name: 'Begin' }).click();
  await expect(page.getByText('In sync, watching')).toBeVisible();
  await shoot(page, 'sealed-sync');
  await page.goto(`${address}/conflicts`);
  await expect(page.getByRole('listitem').filter({ hasText: 'plan.txt' })).toBeVisible();
  await shoot(page, 'sealed-conflicts');
  await page.goto(`${address}/activity`);
  await expect(page.getByText('landlord.txt')).toBeVisible();
  await shoot(page, 'sealed-activity');
});
