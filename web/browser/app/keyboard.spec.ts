// A whole day by keys alone: no mouse, and no focus that a test sets. Whatever cannot be reached fails here.

import type { SynclineClient } from '@syncline/api';
import { press, tabTo } from '../hands.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Notes', { 'plan.txt': 'first', 'other.txt': 'other' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

test('signing in, files, undo, upload, a link and the settings are done without a mouse', async ({
  page,
}) => {
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  // The picker of the system cannot be driven; the one of the page can.
  await page.addInitScript(() => Reflect.deleteProperty(window, 'showOpenFilePicker'));
  await page.goto(server.url);
  await tabTo(page, page.getByLabel('User'));
  await page.keyboard.type('ada');
  await tabTo(page, page.getByLabel('Password'));
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await press(page, page.getByRole('link', { name: 'Notes' }));

  const grid = page.getByRole('grid');
  await expect(grid).toBeFocused();
  await page.keyboard.press('Alt+n');
  await page.keyboard.type('Sketches');
  await page.keyboard.press('Enter');
  await expect(row(page, 'Sketches')).toHaveAttribute('aria-selected', 'true');
  await expect(grid).toBeFocused();
  await page.keyboard.press('F2');
  await page.keyboard.type('Drawings');
  await page.keyboard.press('Enter');
  await expect(row(page, 'Drawings')).toHaveAttribute('aria-selected', 'true');
  // The list may hear of the new name before the dialog does.
  await expect(grid).toBeFocused();
  await page.keyboard.press('Delete');
  await expect(row(page, 'Drawings')).toHaveCount(0);
  await expect(page.getByText('“Drawings” deleted')).toBeVisible();
  await page.keyboard.press('Control+z');
  await expect(row(page, 'Drawings')).toBeVisible();
  await expect(grid).toBeFocused();
  expect((await ada.node(workspace, 'Drawings'))?.kind).toBe('folder');

  const chooser = page.waitForEvent('filechooser');
  await page.keyboard.press('Alt+u');
  const sent = { name: 'sent.txt', mimeType: 'text/plain', buffer: Buffer.from('sent') };
  await (await chooser).setFiles([sent]);
  await expect(row(page, 'sent.txt')).toBeVisible();
  await press(page, button('Clear finished'));
  await expect(page.getByRole('region', { name: 'Transfers' })).toHaveCount(0);

  await tabTo(page, grid);
  await page.keyboard.type('plan');
  await expect(row(page, 'plan.txt')).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('Alt+s');
  const dialog = page.getByRole('dialog');
  await press(page, dialog.getByRole('button', { name: 'New link' }));
  await press(page, dialog.getByRole('button', { name: 'Create link' }));
  await expect(dialog.getByText('Copy the link now')).toBeVisible();
  await press(page, dialog.getByRole('button', { name: 'Done' }));
  await press(page, dialog.getByRole('button', { name: /^Revoke/ }));
  await expect(dialog.getByText('No links yet.')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(grid).toBeFocused();

  await press(page, button('Settings'));
  await tabTo(page, dialog.getByLabel('Like the system'));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await expect(dialog.getByLabel('Dark')).toBeChecked();
  await tabTo(page, dialog.getByLabel('Language'));
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('heading', { name: 'Einstellungen' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(button('Einstellungen')).toBeFocused();
  await press(page, page.getByRole('button', { name: 'Abmelden' }));
  await expect(page.getByLabel('Passwort')).toBeVisible();
});
