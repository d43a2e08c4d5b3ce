// A folder that is kept in sync by one of several tabs.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { card, edit, givePicked, keepInSync, look, makeBox, textOf } from '../picked.ts';
import { RealServer } from '../server.ts';
import { openWorkspace, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
/** The workspace of a test, and the name of its folder. */
let workspace: string;
let name: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

test.beforeEach(async ({ page }) => {
  ({ workspace, name } = await makeBox(page, server, ada));
});

const there = (path: string) => textOf(ada, workspace, path);
const put = (path: string, content: string) => ada.putFile(workspace, path, new Blob([content]));

/** Signs in, and picks the folder for the root of the workspace. */
async function begin(page: Page): Promise<void> {
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
}

test('a second tab waits for the first, and goes on when that is closed', async ({
  page,
  context,
}) => {
  await begin(page);
  const other = await context.newPage();
  await signIn(other, server, 'ada');
  await expect(other.getByRole('link', { name })).toBeVisible();
  await other.goto(`${server.url}/#/sync`);
  await expect(card(other)).toContainText('Another tab keeps it in sync');
  await page.goto('about:blank');
  await expect(card(other)).toContainText('In sync, watching');
  await put('plan.txt', 'for the second tab');
  await expect.poll(async () => (await look(other))['plan.txt']).toBe('for the second tab');
  // What a tab forgets, another one does not bring back.
  await page.goto(`${server.url}/#/sync`);
  await card(page).getByRole('button', { name: 'Stop syncing' }).click();
  await expect(other.getByText('No folder is kept in sync')).toBeVisible();
  await page.reload();
  await expect(page.getByText('No folder is kept in sync')).toBeVisible();
});

test('what another tab has kept meanwhile is not taken for deleted, and no tab begins to keep it twice', async ({
  page,
  context,
}) => {
  const other = await context.newPage();
  await givePicked(other);
  await openWorkspace(other, server, 'ada', name);
  await begin(page);
  await other.getByRole('button', { name: 'Keep in sync' }).click();
  await other.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await expect(other.getByRole('alert')).toContainText('is kept in sync already');
  await other.goto(`${server.url}/#/sync`);
  await other.reload();
  await expect(card(other)).toContainText('Another tab keeps it in sync');
  await card(page).getByRole('button', { name: 'Pause' }).click();
  await card(other).getByRole('button', { name: 'Resume' }).click();
  await expect(card(other)).toContainText('In sync, watching');
  await expect(card(page)).toContainText('Another tab keeps it in sync');
  await edit(other, 'new.txt', 'new');
  await edit(other, 'plan.txt', 'longer than before');
  await expect.poll(() => there('new.txt')).toBe('new');
  await expect.poll(() => there('plan.txt')).toBe('longer than before');
  await expect(card(other)).toContainText('In sync, watching');
  await other.close();
  await expect(card(page)).toContainText('In sync, watching');
  await edit(page, 'last.txt', 'last');
  await expect.poll(() => there('last.txt')).toBe('last');
  expect(await look(page)).toEqual({
    'Letters/to bob.md': 'Dear Bob',
    'last.txt': 'last',
    'new.txt': 'new',
    'plan.txt': 'longer than before',
  });
});
