import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { press, tabTo } from '../hands.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Notes', {
    'plan.txt': 'first',
    'other.txt': 'other',
    'Letters/2026/x.txt': 'x',
    'Letters/other.txt': 'in the way',
  });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

const exists = async (path: string) => (await ada.node(workspace, path)) !== null;

test('a file is moved into a folder and back by keyboard alone', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.type('plan');
  await page.keyboard.press('Alt+m');
  const dialog = page.getByRole('dialog', { name: 'Move “plan.txt”' });
  await expect(dialog.getByRole('button', { name: 'Move to “Notes”' })).toBeDisabled();
  await inEveryLook(page, () => expectAccessible(page));
  await press(page, dialog.getByRole('button', { name: 'Letters' }));
  await expect(dialog.getByRole('button', { name: '2026' })).toBeVisible();
  await page.keyboard.press('Tab');
  await expect(dialog.getByRole('button', { name: '2026' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('There are no folders in it.')).toBeVisible();
  await press(page, dialog.getByRole('button', { name: 'Move to “2026”' }));
  await expect(dialog).toHaveCount(0);
  await expect(page.getByText('1 item moved to “2026”')).toBeVisible();
  await expect(row(page, 'plan.txt')).toHaveCount(0);
  expect(await exists('Letters/2026/plan.txt')).toBe(true);
  await tabTo(page, page.getByRole('grid'));
  await page.keyboard.press('Control+z');
  await expect(row(page, 'plan.txt')).toBeVisible();
  expect(await exists('Letters/2026/plan.txt')).toBe(false);
});

test('what would replace something is not moved, and nothing else is either', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'plan.txt').click();
  await row(page, 'other.txt').click({ modifiers: ['ControlOrMeta'] });
  await page.getByRole('button', { name: 'Move' }).click();
  const dialog = page.getByRole('dialog', { name: 'Move 2 items' });
  await dialog.getByRole('button', { name: 'Letters' }).click();
  await dialog.getByRole('button', { name: 'Move to “Letters”' }).click();
  await expect(dialog.getByRole('alert')).not.toBeEmpty();
  await page.keyboard.press('Escape');
  await expect(row(page, 'plan.txt')).toBeVisible();
  await expect(row(page, 'other.txt')).toBeVisible();
  expect(await exists('Letters/plan.txt')).toBe(false);
  const { body } = await ada.file(workspace, 'Letters/other.txt');
  expect(await new Response(body).text()).toBe('in the way');
});

test('a folder goes not into itself; a copy of it stands beside, and is taken back', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'Letters').click();
  await page.keyboard.press('Alt+c');
  const dialog = page.getByRole('dialog', { name: 'Copy “Letters”' });
  await expect(dialog.getByRole('button', { name: 'Letters', exact: true })).toBeDisabled();
  await dialog.getByRole('button', { name: 'Copy to “Notes”' }).click();
  await expect(row(page, 'Letters (2)')).toBeVisible();
  expect(await exists('Letters%20%282%29/2026/x.txt')).toBe(true);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(row(page, 'Letters (2)')).toHaveCount(0);
  expect(await exists('Letters/2026/x.txt')).toBe(true);
});
