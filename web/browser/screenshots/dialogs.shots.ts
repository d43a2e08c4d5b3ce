// Dialogs, and what is shown where there is nothing to show, in light and dark, and at the width of a phone.

import type { SynclineClient } from '@syncline/api';
import { RealServer } from '../server.ts';
import { openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { shoot } from './shoot.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'new']) server.addUser(name);
  server.addWorkspace('ada', 'Home', {
    'moving.md': '# Moving to Lisbon',
    'contract.pdf': 'x'.repeat(412_000),
    'Letters/landlord.txt': 'Dear Mr Silva',
    'Recipes/soup.md': '# Soup',
  });
  server.addWorkspace('ada', 'Diary', { 'a.txt': 'a' }, ['--sealed']);
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Home')?.id ?? '';
  await ada.makeFolder(workspace, 'Photos');
});

test.afterAll(() => server.end());

test('first steps', async ({ page }) => {
  await signIn(page, server, 'new');
  await expect(page.getByRole('main')).toBeVisible();
  await page.waitForLoadState('networkidle');
  await shoot(page, 'first-steps');
});

test('dialogs of files', async ({ page }) => {
  const dialog = page.getByRole('dialog');
  await openWorkspace(page, server, 'ada', 'Home');
  await row(page, 'contract.pdf').click();
  await page.keyboard.press('Alt+m');
  await expect(dialog.getByRole('button', { name: 'Letters' })).toBeVisible();
  await shoot(page, 'move');
  await page.keyboard.press('Escape');
  await expect(dialog).toBeHidden();
  await page.keyboard.press('Alt+n');
  await page.keyboard.type('moving.md');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toBeVisible();
  await shoot(page, 'new-folder');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('invoice');
  await expect(dialog.getByRole('status')).toContainText('Nothing in Home');
  await shoot(page, 'search-nothing');
});

test('settings, shortcuts, a new workspace', async ({ page }) => {
  await signIn(page, server, 'ada');
  for (const [button, name] of [
    ['New workspace', 'new-workspace'],
    ['Settings', 'settings'],
    ['Keyboard shortcuts', 'shortcuts'],
  ] as const) {
    await page.getByRole('button', { name: button, exact: true }).click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await shoot(page, name);
    await page.keyboard.press('Escape');
    await expect(page.getByRole('dialog')).toBeHidden();
  }
});

test('an encrypted workspace that is locked, and the code of another device', async ({ page }) => {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await expect(page.getByLabel('Passphrase')).toBeVisible();
  await shoot(page, 'sealed-locked');
  await page.goto(`${server.url}/#/pair/0000-0000`);
  await expect(page.getByRole('alert')).toBeVisible();
  await shoot(page, 'pair-code');
});

test('nothing to show', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Home');
  await page.goto(`${server.url}/#/w/${workspace}/Photos`);
  await expect(page.getByText('This folder is empty')).toBeVisible();
  await shoot(page, 'empty-folder');
  await page.goto(`${server.url}/#/w/${workspace}/Nowhere`);
  await expect(page.getByRole('alert')).toBeVisible();
  await shoot(page, 'not-there');
});

test('links', async ({ page }) => {
  const made = await ada.call('POST /workspaces/{workspace}/links', {
    params: { workspace },
    body: { path: 'Letters', password: 'open sesame' },
  });
  await page.goto(`${server.url}/#/s/${made.secret ?? ''}`);
  await expect(page.getByLabel('Password')).toBeVisible();
  await shoot(page, 'link-password');
  await page.goto(`${server.url}/#/s/nothing`);
  await expect(page.getByRole('alert')).toBeVisible();
  await shoot(page, 'link-nowhere');
});
