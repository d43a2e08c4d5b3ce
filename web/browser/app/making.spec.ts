import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let bob: SynclineClient;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob', 'eve']) server.addUser(name);
  server.addWorkspace('bob', 'Secrets', { 'a.txt': 'a' }, ['--sealed']);
  server.addWorkspace('bob', 'Notes', { 'a.txt': 'a' });
  bob = await server.client('bob');
});

test.afterAll(() => server.end());

test('who has no workspace names one and drops files into it, by keyboard up to the drop', async ({
  page,
}) => {
  await signIn(page, server, 'ada');
  await expect(page.getByText('No workspaces yet')).toBeVisible();
  await expect(page.getByLabel('Name of the workspace')).toBeFocused();
  await expect(page.getByRole('radio', { name: 'Not encrypted' })).toBeChecked();
  await expect(page.getByText('You, and the server with whoever runs it.')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toHaveText('Type a name.');
  await page.keyboard.type('Trips 2026');
  await page.keyboard.press('Enter');
  const ready = page.getByRole('heading', { name: '“Trips 2026” is ready' });
  await expect(ready).toBeFocused();
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('Tab');
  await expect(page.getByRole('button', { name: 'Choose files' })).toBeFocused();
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['dropped'], 'dropped.txt'));
    return transfer;
  });
  await page.dispatchEvent('main', 'dragover', { dataTransfer: data });
  await expect(page.getByText('Drop to upload here')).toBeVisible();
  await page.dispatchEvent('main', 'drop', { dataTransfer: data });
  await expect(row(page, 'dropped.txt')).toBeVisible();
  const ada = await server.client('ada');
  const [made] = await ada.workspaces();
  expect(made).toMatchObject({ name: 'Trips 2026', mode: 'plain', role: 'owner' });
  const { body } = await ada.file(made?.id ?? '', 'dropped.txt');
  expect(await new Response(body).text()).toBe('dropped');
});

test('the first files can be chosen, in the other language', async ({ page }) => {
  await signIn(page, server, 'eve');
  await expect(page.getByText('No workspaces yet')).toBeVisible();
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Language').selectOption('de');
  await page.keyboard.press('Escape');
  await expect(page.getByText('Sie, und der Server samt dem, der ihn betreibt.')).toBeVisible();
  await page.getByLabel('Name des Arbeitsbereichs').fill('Bücher');
  await page.getByRole('button', { name: 'Arbeitsbereich anlegen' }).click();
  await inEveryLook(page, () => expectAccessible(page));
  await page
    .locator('input[type=file]')
    .first()
    .setInputFiles([{ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('eins') }]);
  await expect(row(page, 'a.txt')).toBeVisible();
  await page.goto(`${server.url}/#/`);
  await expect(page.getByRole('link', { name: /Bücher\s+Nicht verschlüsselt/ })).toBeVisible();
});

test('another workspace is made in a dialog, under a name that is free, and opened', async ({
  page,
}) => {
  await signIn(page, server, 'bob');
  const sealed = page.getByRole('listitem').filter({ hasText: 'Encrypted workspace' });
  await expect(sealed).toHaveCount(1);
  await expect(page.getByRole('link', { name: /Notes\s+Not encrypted/ })).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('button', { name: 'New workspace' }).press('Enter');
  const dialog = page.getByRole('dialog', { name: 'New workspace' });
  await expect(dialog.getByLabel('Name of the workspace')).toBeFocused();
  await dialog.getByText('Encrypted', { exact: true }).click();
  await expect(dialog.getByLabel('Passphrase', { exact: true })).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await dialog.getByText('Not encrypted').click();
  await dialog.getByLabel('Name of the workspace').fill('Notes');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toHaveText('You have a workspace “Notes” already.');
  expect(await bob.workspaces()).toHaveLength(2);
  await dialog.getByLabel('Name of the workspace').fill('Box');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Workspace “Box” created')).toBeVisible();
  await expect(page.getByText('This folder is empty')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Upload files' })).toBeVisible();
  const box = (await bob.workspaces()).find(({ name }) => name === 'Box');
  expect(box?.mode).toBe('plain');
});

test('a name that the server alone refuses is said in the dialog, and what was typed stays', async ({
  page,
}) => {
  await signIn(page, server, 'bob');
  await page.getByRole('button', { name: 'New workspace' }).click();
  const dialog = page.getByRole('dialog');
  const id = '0123456789abcdef'.repeat(2);
  await dialog.getByLabel('Name of the workspace').fill(id);
  await dialog.getByRole('button', { name: 'Create workspace' }).click();
  await expect(dialog.getByRole('alert')).toContainText('it looks like a workspace id');
  await expect(dialog.getByLabel('Name of the workspace')).toHaveValue(id);
  expect((await bob.workspaces()).some(({ name }) => name === id)).toBe(false);
});
