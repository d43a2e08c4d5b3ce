import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { keys, tabTo } from '../hands.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob', 'eve']) server.addUser(name);
  server.addWorkspace('ada', 'Notes', { 'plan.txt': 'first', 'Letters/to bob.md': 'Dear Bob' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

const members = () => ada.call('GET /workspaces/{workspace}/members', { params: { workspace } });
const links = () => ada.call('GET /workspaces/{workspace}/links', { params: { workspace } });

test('somebody is let in, may then more, and is removed, by keyboard alone', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.press('Alt+s');
  const dialog = page.getByRole('dialog', { name: 'Share “Notes”' });
  await expect(dialog.getByText('Nobody else may use this workspace.')).toBeVisible();
  const hand = keys(page);
  const name = dialog.getByLabel('User name');
  await hand.type(name, 'nobody-here');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert').first()).toContainText('no account “nobody-here”');
  await hand.retype(name, 'ada');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert').first()).toContainText('This is the owner');
  await hand.retype(name, 'bob');
  await page.keyboard.press('Enter');
  const right = dialog.getByLabel('Right of bob');
  await expect(right).toHaveValue('view');
  await tabTo(page, right);
  // No Return: it may open the list of the system, over what was chosen.
  await page.keyboard.press('ArrowDown');
  await expect(right).toHaveValue('edit');
  await expect
    .poll(async () => (await members()).map(({ user, role }) => `${user} ${role}`))
    .toEqual(['ada owner', 'bob edit']);
  await hand.press(dialog.getByRole('button', { name: 'Remove bob' }));
  await expect(right).toHaveCount(0);
  expect(await members()).toHaveLength(1);
  // What is said stands in the dialog, where it can be heard and pressed.
  const said = dialog.getByRole('region', { name: 'Notices' });
  await expect(said).toContainText('bob');
  expect(await said.getAttribute('aria-live')).toBe('polite');
  await hand.press(said.getByRole('button', { name: 'Undo' }));
  await expect(right).toHaveValue('edit');
  await hand.press(dialog.getByRole('button', { name: 'Remove bob' }));
  await expect(right).toHaveCount(0);
  await hand.close();
  await expect(page.getByRole('region', { name: 'Notices' })).toContainText('bob');
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole('grid')).toBeFocused();
});

test('a right that the server does not give is not shown as given', async ({ page }) => {
  await ada.call('PUT /workspaces/{workspace}/members/{user}', {
    params: { workspace, user: 'eve' },
    body: { role: 'view' },
  });
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.getByRole('button', { name: 'Share' }).click();
  const dialog = page.getByRole('dialog', { name: 'Share “Notes”' });
  const right = dialog.getByLabel('Right of eve');
  await page.route('**/members/eve', (route) => route.abort());
  await right.selectOption('edit');
  await expect(dialog.locator('#people-fault')).not.toBeEmpty();
  await expect(right).toHaveValue('view');
  await page.unroute('**/members/eve');
  await right.selectOption('edit');
  await expect
    .poll(async () => (await members()).map(({ role }) => role))
    .toEqual(['owner', 'edit']);
  await dialog.getByRole('button', { name: 'Remove eve' }).click();
  await expect(right).toHaveCount(0);
});

test('a member sees who the owner is, makes no link without the right, and leaves', async ({
  page,
}) => {
  await ada.call('PUT /workspaces/{workspace}/members/{user}', {
    params: { workspace, user: 'eve' },
    body: { role: 'view' },
  });
  await openWorkspace(page, server, 'eve', 'Notes');
  await page.getByRole('button', { name: 'Share' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('owner')).toBeVisible();
  await expect(dialog.getByRole('button', { name: 'New link' })).toHaveCount(0);
  await expect(dialog.getByLabel('User name')).toHaveCount(0);
  await dialog.getByRole('button', { name: 'Leave this workspace' }).click();
  await expect(page.getByText('No workspaces yet')).toBeVisible();
  expect((await members()).map(({ user }) => user)).toEqual(['ada']);
});

test('a link is made with a day, a password and a limit, copied, listed and revoked', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'plan.txt').click();
  await page.getByRole('button', { name: 'Share' }).click();
  const dialog = page.getByRole('dialog', { name: 'Share “plan.txt”' });
  await expect(dialog.getByText('No links yet.')).toBeVisible();
  await dialog.getByRole('button', { name: 'New link' }).click();
  await dialog.getByLabel('on a day').check();
  await dialog.getByLabel('Last day').fill('2020-01-01');
  await dialog.getByRole('button', { name: 'Create link' }).click();
  await expect(dialog.getByRole('alert').last()).toContainText('That day is over.');
  await dialog.getByLabel('in 30 days').check();
  await dialog.getByRole('button', { name: 'Make one up' }).click();
  await dialog.getByLabel('Downloads at most').fill('3');
  await dialog.getByRole('button', { name: 'Create link' }).click();
  await expect(dialog.getByText('Copy the link now')).toBeVisible();
  await dialog.getByRole('button', { name: 'Copy link' }).click();
  await expect(dialog.getByText('Copied')).toBeVisible();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toMatch(new RegExp(`^${server.url}/#/s/[\\w-]{20,}$`));
  await dialog.getByRole('button', { name: 'Copy password' }).click();
  const password = await page.evaluate(() => navigator.clipboard.readText());
  expect(password).toMatch(/^(\w{4}-){3}\w{4}$/);
  const [made] = await links();
  expect(made).toMatchObject({ path: 'plan.txt', downloads_max: 3, has_password: true });
  const secret = copied.split('/').at(-1) ?? '';
  const opened = await ada.call('POST /public/{secret}/unlock', {
    params: { secret },
    body: { password },
  });
  expect(opened.pass).not.toBe('');
  await expect(dialog.getByText('0 of 3 downloads')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await dialog.getByRole('button', { name: 'Done' }).click();
  await dialog.getByRole('button', { name: /^Revoke: plan\.txt/ }).click();
  await expect(dialog.getByText('No links yet.')).toBeVisible();
  expect(await links()).toEqual([]);
});

test('all links into a workspace stand in its dialog, with what became of them', async ({
  page,
}) => {
  const make = (path: string, expires_in_seconds: number | null) =>
    ada.call('POST /workspaces/{workspace}/links', {
      params: { workspace },
      body: { path, expires_in_seconds },
    });
  await make('', null);
  await make('Letters', 1);
  await make('plan.txt', 86_400);
  await expect
    .poll(async () => (await links()).some(({ state }) => state === 'expired'))
    .toBe(true);
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.getByRole('button', { name: 'Share' }).click();
  const listed = page.getByRole('dialog').getByRole('listitem');
  await expect(listed.filter({ hasText: 'Whole workspace' })).toContainText('no end');
  await expect(listed.filter({ hasText: 'Letters' })).toContainText('Expired');
  await expect(listed.filter({ hasText: 'plan.txt' })).toContainText('Open');
  await inEveryLook(page, () => expectAccessible(page));
  for (const link of await links()) {
    await ada.call('DELETE /workspaces/{workspace}/links/{link}', {
      params: { workspace, link: link.id },
    });
  }
});

test('a name of an account is shown as text, whatever it is', async ({ page }) => {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: 'Notes' }).click();
  await page.getByRole('button', { name: 'Share' }).click();
  const hostile = '<img src=x onerror=alert(1)>/../?x';
  await page.getByLabel('User name').fill(hostile);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await expect(page.getByRole('dialog').getByRole('alert').first()).toContainText(
    /account|invalid/,
  );
  expect(await members()).toHaveLength(1);
});
