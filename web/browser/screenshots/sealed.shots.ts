// What is done in encrypted workspaces: made, kept in sync with a folder, decided, and told, in light and dark, and at the width of a phone.

import { randomBytes } from 'node:crypto';
import { byDevice, CODE, digitsOn, enter } from '../pairing.ts';
import { edit, givePicked } from '../picked.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { openSealed, signIn, unlock } from '../steps.ts';
import { expect, test } from '../test.ts';
import { shoot } from './shoot.ts';

const FILES = { 'plan.txt': 'Leave in May\n', 'notes.md': '# Notes', 'Letters/landlord.txt': 'Hi' };

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob', 'new']) server.addUser(name);
  server.addWorkspace('ada', 'Diary', FILES, ['--sealed']);
  server.share('ada', 'Diary', 'bob:edit', ['--fingerprint', server.fingerprint('bob')]);
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
  await openSealed(page, server, 'ada', 'plan.txt');
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

test('files that were not finished', async ({ page }) => {
  await openSealed(page, server, 'ada', 'plan.txt');
  let packs = 0;
  await page.route('**/packs/*', (route) => {
    const isHeld = route.request().method() === 'PUT' && ++packs > 2;
    return isHeld ? undefined : route.continue();
  });
  const mimeType = 'video/mp4';
  const buffer = randomBytes(16_000_000);
  await page
    .locator('input[type=file]')
    .first()
    .setInputFiles({ name: 'birthday.mp4', mimeType, buffer });
  await expect.poll(() => packs).toBeGreaterThan(2);
  await page.reload();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await unlock(page, 'plan.txt');
  await expect(page.getByText('1 file was not finished.')).toBeVisible();
  await shoot(page, 'sealed-unfinished');
});

test('the digits of a device that is let in', async ({ page }) => {
  const host = server.atTerminal('ada', ['pair', server.folderOf('ada', 'Diary')]);
  await byDevice(page, server);
  await enter(page, await host.waitFor(CODE));
  await expect(digitsOn(page)).toBeVisible();
  await shoot(page, 'pair-digits');
  host.interrupt();
  await host.ended();
});

test('the id of a workspace that somebody shares', async ({ page }) => {
  await signIn(page, server, 'bob');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await expect(page.getByLabel('Passphrase of your identity')).toBeFocused();
  await shoot(page, 'sealed-shared');
});
