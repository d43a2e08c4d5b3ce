// A folder that is kept in sync, and what stands apart from it: another tab that has it, too, and folders that become workspaces of their own.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { card, edit, keepInSync, look, makeBox, pick, textOf } from '../picked.ts';
import { RealServer } from '../server.ts';
import { openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
/** The workspace of a test, and the name of its folder. */
let workspace: string;
let name: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addUser('bob');
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

test.beforeEach(async ({ page }) => {
  ({ workspace, name } = await makeBox(page, server, ada));
});

const there = (path: string) => textOf(ada, workspace, path);
const put = (path: string, content: string) => ada.putFile(workspace, path, new Blob([content]));

const workspaceOf = async (called: string) =>
  (await ada.workspaces()).find((found) => found.name === called)?.id;

/** Signs in, and picks the folder for the root of the workspace. */
async function begin(page: Page): Promise<void> {
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
}

test('what is paused in one tab is paused in the one that keeps the folder, and stays so', async ({
  page,
  context,
}) => {
  await begin(page);
  const other = await context.newPage();
  await signIn(other, server, 'ada');
  await expect(other.getByRole('link', { name })).toBeVisible();
  await other.goto(`${server.url}/#/sync`);
  await expect(card(other)).toContainText('Another tab keeps it in sync');
  await card(other).getByRole('button', { name: 'Pause' }).click();
  await expect(card(page)).toContainText('Paused');
  await put('plan.txt', 'while it is paused');
  await edit(page, 'Letters', null);
  // Neither side is touched, also after what the tab that kept it has saved last.
  await page.reload();
  await page.goto(`${server.url}/#/sync`);
  await expect(card(page)).toContainText('Paused');
  expect((await look(page))['plan.txt']).toBe('first');
  expect(await there('Letters/to bob.md')).toBe('Dear Bob');
  await card(other).getByRole('button', { name: 'Resume' }).click();
  await expect.poll(async () => (await look(page))['plan.txt']).toBe('while it is paused');
  await expect.poll(() => ada.node(workspace, 'Letters')).toBeNull();
  await expect(card(page)).not.toContainText('Paused');
});

test('a folder that becomes a workspace of its own is left as it is here, and named', async ({
  page,
}) => {
  await begin(page);
  server.sync('ada', name);
  server.share('ada', `${name}/Letters`, 'bob:edit', ['--workspace', `${name} Letters`]);
  expect(await ada.node(workspace, 'Letters')).toMatchObject({
    mounted: await workspaceOf(`${name} Letters`),
  });
  await put('after.txt', 'after');
  await expect.poll(async () => (await look(page))['after.txt']).toBe('after');
  await expect(card(page)).toContainText('Letters: is a workspace of its own');
  await edit(page, 'Letters/mine.txt', 'mine');
  await put('later.txt', 'later');
  await expect.poll(async () => (await look(page))['later.txt']).toBe('later');
  expect(await look(page)).toMatchObject({
    'Letters/mine.txt': 'mine',
    'Letters/to bob.md': 'Dear Bob',
  });
});

test('a folder that is kept by itself and becomes a workspace of its own is not emptied here', async ({
  page,
}) => {
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name })).toBeVisible();
  await page.goto(`${server.url}/#/f/${workspace}/Letters`);
  await pick(page);
  await expect.poll(() => look(page)).toEqual({ 'to bob.md': 'Dear Bob' });
  server.sync('ada', name);
  server.share('ada', `${name}/Letters`, 'bob:edit', ['--workspace', `${name} Letters`]);
  await expect(card(page)).toContainText('Nothing was deleted for that');
  expect(await look(page)).toEqual({ 'to bob.md': 'Dear Bob' });
});

test('a folder that is a workspace of its own is opened as that workspace, wherever it is met', async ({
  page,
}) => {
  server.sync('ada', name);
  server.share('ada', `${name}/Letters`, 'bob:edit', ['--workspace', `${name} Letters`]);
  const inner = (await workspaceOf(`${name} Letters`)) ?? '';
  await ada.putFile(inner, 'inside.txt', new Blob(['inside']));
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: `${name} Letters` })).toBeVisible();
  await page.goto(`${server.url}/#/w/${workspace}`);
  const letters = row(page, 'Letters');
  await expect(letters).toContainText('Shared');
  await expect(row(page, 'plan.txt').getByText('Shared')).toBeHidden();
  // What would be shared or packed here is what it was.
  await letters.click();
  await expect(page.getByRole('button', { name: 'Rename' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Share' })).toBeHidden();
  await page.getByRole('grid').press('Enter');
  await expect(page.getByRole('heading', { name: `${name} Letters` })).toBeVisible();
  await expect(row(page, 'inside.txt')).toBeVisible();
  await expect(row(page, 'to bob.md')).toBeVisible();
  // An address that was kept before leads there, too, and Back is not caught by it.
  await page.goto(`${server.url}/#/`);
  await page.goto(`${server.url}/#/w/${workspace}/Letters`);
  await expect(row(page, 'inside.txt')).toBeVisible();
  expect(page.url()).toContain(inner);
  await page.goBack();
  await expect(page.getByRole('link', { name: `${name} Letters` })).toBeVisible();
  // Whoever looks at it at that moment is taken along.
  await ada.makeFolder(workspace, 'More');
  await ada.putFile(workspace, 'More/a.txt', new Blob(['a']));
  await page.goto(`${server.url}/#/w/${workspace}/More`);
  await expect(row(page, 'a.txt')).toBeVisible();
  server.sync('ada', name);
  server.share('ada', `${name}/More`, 'bob:view', ['--workspace', `${name} More`]);
  await expect(page.getByRole('heading', { name: `${name} More` })).toBeVisible();
  await expect(row(page, 'a.txt')).toBeVisible();
});
