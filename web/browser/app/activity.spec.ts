// Who did what: told as it happens, and it leads to the file and its versions.

import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const user of ['ada', 'bob']) server.addUser(user);
  server.addWorkspace('ada', 'Notes', { 'plan.txt': 'first', 'Letters/to bob.md': 'Dear Bob' });
  server.addWorkspace('ada', 'Secrets', { 'a.txt': 'a' }, ['--sealed']);
  server.share('ada', 'Notes', 'bob:view');
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Notes')?.id ?? '';
});

test.afterAll(() => server.end());

test('what devices and browsers do is told as it happens, and opened by keys alone', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.press('Alt+a');
  await expect(page).toHaveTitle('Activity – Notes – Syncline');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  const list = page.getByRole('region', { name: 'Activity in Notes' });
  const lines = list.locator('li.change');
  await expect(page.getByRole('heading', { name: 'Today' })).toBeVisible();
  // The folder, what is in it, and the file beside it.
  await expect(lines).toHaveCount(3);
  await expect(lines.filter({ hasText: 'to bob.md' })).toContainText(
    /Added\s*to bob\.md\s*Letters/,
  );

  await ada.putFile(workspace, 'plan.txt', new Blob(['second']));
  await expect(lines.first()).toContainText(/Changed\s*plan\.txt\s*Notes/);
  await ada.move(workspace, 'plan.txt', 'the plan.txt'.replace(' ', '%20'));
  await expect(lines.first()).toContainText(/Renamed\s*the plan\.txt\s*Notes · was “plan\.txt”/);
  await ada.move(workspace, 'the%20plan.txt', 'Letters/the%20plan.txt');
  await expect(lines.first()).toContainText(/Moved\s*the plan\.txt\s*Letters/);
  server.write('ada', 'Notes', 'from the device.txt', 'device');
  await expect(lines.first()).toContainText(/Added\s*from the device\.txt/);
  await expect(list.getByText(/^You, on (?!test)/)).toHaveCount(1);
  await expect(list.getByText('You, on test')).toHaveCount(3);
  await ada.delete(workspace, 'from%20the%20device.txt');
  await expect(lines.first()).toContainText(/Deleted\s*from the device\.txt\s*In the trash/);
  await expect(lines.nth(1)).toContainText('Added');
  await expect(lines.nth(1).getByRole('button')).toHaveCount(0);
  await inEveryLook(page, () => expectAccessible(page));

  const tabTo = async (target: ReturnType<typeof page.getByRole>) => {
    for (let stop = 0; stop < 40; stop++) {
      if (await target.evaluate((element) => element === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${String(target)}`);
  };
  const moved = lines.filter({ hasText: 'Moved' });
  await tabTo(moved.getByRole('button', { name: 'the plan.txt', exact: true }));
  await page.keyboard.press('Enter');
  await expect(page.getByText('second', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(moved.getByRole('button', { name: 'the plan.txt', exact: true })).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Version 4')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await tabTo(page.getByRole('button', { name: 'Restore: Version 1' }));
  await page.keyboard.press('Enter');
  await expect(lines.first()).toContainText(/Changed\s*the plan\.txt/);
  await expect(page.getByText('Version 5')).toBeVisible();
  const { body } = await ada.file(workspace, 'Letters/the%20plan.txt');
  expect(await new Response(body).text()).toBe('first');
  await page.getByRole('complementary').getByRole('button', { name: 'Close' }).press('Enter');

  await lines.first().getByText('the plan.txt').click();
  await expect(page.getByText('first', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');
  await lines.filter({ hasText: 'Deleted' }).getByRole('link').click();
  await expect(row(page, 'from the device.txt')).toBeVisible();
  await page.goBack();
  await expect(lines.first()).toBeVisible();
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'Letters')).toBeVisible();
});

test('a long history comes in pages, and one entry with many changes says how many', async ({
  page,
}) => {
  const files = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`f${at}.txt`, `${at}`] as const),
  );
  server.addWorkspace('ada', 'Many', files);
  const many = (await ada.workspaces()).find(({ name }) => name === 'Many')?.id ?? '';
  for (let at = 0; at < 60; at++) await ada.putFile(many, 'one.txt', new Blob([`${at}`]));
  await openWorkspace(page, server, 'ada', 'Many');
  await page.getByRole('button', { name: 'Activity' }).click();
  const lines = page.locator('li.change');
  await expect(lines).toHaveCount(50);
  await page.getByRole('button', { name: 'Show older' }).press('Enter');
  await expect(page.getByText('and 20 other changes')).toBeVisible();
  await expect(lines).toHaveCount(60 + 20);
  await expect(page.getByRole('button', { name: 'Show older' })).toHaveCount(0);
});

test('who may only look sees it, by the names of devices; an encrypted workspace and a server that is away say so', async ({
  page,
}) => {
  const sealed = (await ada.workspaces()).find(({ mode }) => mode === 'sealed');
  await signIn(page, server, 'bob');
  await page.getByRole('link', { name: 'Notes' }).click();
  await page.getByRole('button', { name: 'Activity' }).click();
  await expect(page.locator('li.change').first()).toBeVisible();
  await expect(page.getByText(/^You, on/)).toHaveCount(0);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: 'Notes' })).toBeVisible();
  await page.goto(`${server.url}/#/a/${sealed?.id}`);
  await expect(page.getByRole('alert')).toContainText('This workspace is encrypted.');
  const made = await ada.call('POST /workspaces', { body: { name: 'New' } });
  await page.goto(`${server.url}/#/a/${made.id}`);
  await expect(page.getByText('Nothing has happened yet')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await server.halt();
  await page.goto(`${server.url}/#/a/${workspace}`);
  await expect(page.getByRole('alert')).toContainText('The server cannot be reached');
  await server.run();
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.locator('li.change').first()).toBeVisible();
});
