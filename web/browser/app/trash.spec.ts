import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { tabTo } from '../hands.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob']) server.addUser(name);
  server.addWorkspace('ada', 'Notes', {
    'plan.txt': 'first',
    'other.txt': 'other',
    'Letters/2026/x.txt': 'x',
    'Letters/to bob.md': 'Dear Bob',
    'keep.txt': 'keep',
  });
  server.addWorkspace('ada', 'Secrets', { 'a.txt': 'a' }, ['--sealed']);
  server.share('ada', 'Notes', 'bob:view');
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Notes')?.id ?? '';
});

test.afterAll(() => server.end());

const exists = async (path: string) => (await ada.node(workspace, path)) !== null;

async function content(path: string): Promise<string> {
  const { body } = await ada.file(workspace, path);
  return new Response(body).text();
}

/** Looks at the trash without a look at the files before. */
async function openTrash(page: Page, user = 'ada'): Promise<void> {
  await signIn(page, server, user);
  await expect(page.getByRole('link', { name: 'Notes' })).toBeVisible();
  await page.goto(`${server.url}/#/t/${workspace}`);
}

test('what was deleted is found by keyboard alone, with where, when and by whom, and brought back', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.press('Alt+t');
  await expect(page.getByText('Nothing is deleted')).toBeVisible();
  await expect(page).toHaveTitle('Trash – Notes – Syncline');
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'plan.txt')).toBeVisible();
  await tabTo(page, page.getByRole('grid'));
  await page.keyboard.type('plan');
  await page.keyboard.press('Delete');
  await expect(row(page, 'plan.txt')).toHaveCount(0);
  await page.keyboard.press('Alt+t');
  const gone = row(page, 'plan.txt');
  await expect(gone).toContainText('Notes');
  await expect(gone).toContainText('5 B');
  await expect(gone).toContainText(/(now|ago) by \S/);
  await expect(page.getByText('1 item', { exact: true })).toBeVisible();
  await page.reload();
  await expect(gone).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await tabTo(page, page.getByRole('grid'));
  await page.keyboard.press('Space');
  await page.keyboard.press('Alt+r');
  await expect(page.getByText('“plan.txt” is back in “Notes”')).toBeVisible();
  await expect(page.getByText('Nothing is deleted')).toBeVisible();
  expect(await content('plan.txt')).toBe('first');
});

test('a folder comes back with what was in it, and with something else beside it', async ({
  page,
}) => {
  for (const path of ['Letters', 'other.txt']) await ada.delete(workspace, path);
  await openTrash(page);
  await expect(page.getByText('2 items', { exact: true })).toBeVisible();
  await page.getByLabel('Show what was in deleted folders, too').check();
  await expect(page.getByText('5 items', { exact: true })).toBeVisible();
  await expect(row(page, 'x.txt')).toContainText('Letters/2026');
  await page.getByLabel('Show what was in deleted folders, too').uncheck();
  await row(page, 'Letters').click();
  await row(page, 'other.txt').click({ modifiers: ['ControlOrMeta'] });
  await page.getByRole('button', { name: 'Bring back' }).click();
  await expect(page.getByText('2 items are back')).toBeVisible();
  await expect(page.getByText('Nothing is deleted')).toBeVisible();
  expect(await content('Letters/2026/x.txt')).toBe('x');
  expect(await content('Letters/to%20bob.md')).toBe('Dear Bob');
  expect(await content('other.txt')).toBe('other');
});

test('one file of a deleted folder comes back into its folder, and the rest stays', async ({
  page,
}) => {
  await ada.delete(workspace, 'Letters');
  await openTrash(page);
  await page.getByLabel('Show what was in deleted folders, too').check();
  await row(page, 'to bob.md').dblclick();
  await expect(page.getByText('“to bob.md” is back in “Letters”')).toBeVisible();
  await expect(page.getByText('2 items', { exact: true })).toBeVisible();
  expect(await content('Letters/to%20bob.md')).toBe('Dear Bob');
  expect(await exists('Letters/2026')).toBe(false);
});

test('what has its name by now stays as it is, and what comes back stands beside it', async ({
  page,
}) => {
  await ada.delete(workspace, 'keep.txt');
  await ada.putFile(workspace, 'keep.txt', new Blob(['another']));
  await openTrash(page);
  await row(page, 'keep.txt').click();
  await page.keyboard.press('Enter');
  await expect(page.getByText(/“keep.*” is back in “Notes”/)).toBeVisible();
  expect(await content('keep.txt')).toBe('another');
  const names: string[] = [];
  for await (const nodes of ada.folder(workspace, '')) {
    for (const { name, path } of nodes) {
      if (name.startsWith('keep')) names.push(await content(path));
    }
  }
  expect(names.sort()).toEqual(['another', 'keep']);
});

test('what others delete and bring back shows by itself; who may only look sees it, too', async ({
  page,
}) => {
  await ada.putFile(workspace, 'live.txt', new Blob(['live']));
  await openTrash(page, 'bob');
  await expect(page.getByText('View only')).toBeVisible();
  await ada.delete(workspace, 'live.txt');
  await expect(row(page, 'live.txt')).toBeVisible();
  await row(page, 'live.txt').click();
  await expect(page.getByText('1 item selected')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Bring back' })).toHaveCount(0);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Alt+r');
  expect(await exists('live.txt')).toBe(false);
});

test('long lists come in pages, and go on where somebody asks', async ({ page }) => {
  const made = await ada.call('POST /workspaces', { body: { name: 'Many' } });
  await ada.makeFolder(made.id, 'f');
  const names = Array.from({ length: 5 }, (_, at) => `f/${at}.txt`);
  for (const name of names) await ada.putFile(made.id, name, new Blob([name]));
  for (const name of names) await ada.delete(made.id, name);
  // The pages of the server, made small.
  await page.route('**/deleted*', async (route) => {
    const url = new URL(route.request().url());
    url.searchParams.set('limit', '2');
    await route.continue({ url: url.href });
  });
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: 'Many' }).click();
  await page.getByRole('button', { name: 'Trash' }).click();
  await expect(page.getByText('2 items and older ones')).toBeVisible();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Show older ones' }).press('Enter');
  await expect(page.getByText('4 items and older ones')).toBeVisible();
  await page.getByRole('button', { name: 'Show older ones' }).press('Enter');
  await expect(page.getByText('5 items', { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Show older ones' })).toHaveCount(0);
});

test('an encrypted workspace has no trash here, and a server that is away is asked again', async ({
  page,
}) => {
  const sealed = (await ada.workspaces()).find(({ mode }) => mode === 'sealed');
  await ada.putFile(workspace, 'away.txt', new Blob(['away']));
  await ada.delete(workspace, 'away.txt');
  await openTrash(page);
  await expect(page.getByRole('grid')).toBeVisible();
  await page.goto(`${server.url}/#/t/${sealed?.id}`);
  await expect(page.getByRole('alert')).toContainText('This workspace is encrypted.');
  await inEveryLook(page, () => expectAccessible(page));
  await server.halt();
  await page.goto(`${server.url}/#/t/${workspace}`);
  await expect(page.getByRole('alert')).toContainText('The server cannot be reached');
  await server.run();
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(row(page, 'away.txt')).toBeVisible();
});

test.describe('on a phone, in the other language', () => {
  test.use({ viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true, locale: 'de' });

  test('a tap chooses and does nothing yet, the button brings back', async ({ page }) => {
    await ada.putFile(workspace, 'tap.txt', new Blob(['tap']));
    await ada.delete(workspace, 'tap.txt');
    await page.goto(server.url);
    await page.getByLabel('Benutzer').fill('ada');
    await page.getByLabel('Passwort').fill('correct horse battery staple');
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.getByRole('link', { name: 'Notes' }).tap();
    await page.getByRole('button', { name: 'Papierkorb' }).tap();
    await row(page, 'tap.txt').tap();
    await expect(page.getByText('1 Element ausgewählt')).toBeVisible();
    expect(await exists('tap.txt')).toBe(false);
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Zurückholen' }).tap();
    await expect(page.getByText('„tap.txt“ ist zurück in „Notes“')).toBeVisible();
    expect(await content('tap.txt')).toBe('tap');
  });
});
