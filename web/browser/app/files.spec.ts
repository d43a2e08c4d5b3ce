import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob']) server.addUser(name);
  server.addWorkspace('ada', 'Notes', {
    'plan.txt': 'first',
    'Letters/to bob.md': 'Dear Bob',
    'Letters/2026/10 % off & more.txt': 'sale',
    'größe.csv': '1;2',
  });
  server.addWorkspace('ada', 'Secrets', { 'a.txt': 'a' }, ['--sealed']);
  const many = Array.from({ length: 2_345 }, (_, at) => [`${at}.txt`, String(at)]);
  server.addWorkspace('ada', 'Many', Object.fromEntries(many));
  server.share('ada', 'Notes', 'bob:view');
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Notes')?.id ?? '';
});

test.afterAll(() => server.end());

async function signIn(page: Page, user = 'ada'): Promise<void> {
  await page.goto(server.url);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Opens the root of the workspace with the keyboard in the list. */
async function openNotes(page: Page, user = 'ada'): Promise<void> {
  await signIn(page, user);
  await page.getByRole('link', { name: 'Notes' }).click();
  await expect(page.getByRole('row', { name: /plan\.txt/ })).toBeVisible();
  await page.getByRole('grid').focus();
}

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

test('folders are entered by Enter, left by Alt+Up, and have addresses that a reload keeps', async ({
  page,
}) => {
  await openNotes(page);
  await page.keyboard.type('let');
  await page.keyboard.press('Enter');
  await expect(row(page, 'to bob.md')).toBeVisible();
  await expect(page.getByRole('grid')).toBeFocused();
  await page.keyboard.type('2026');
  await page.keyboard.press('Enter');
  await expect(row(page, '10 % off & more.txt')).toBeVisible();
  await page.reload();
  await expect(row(page, '10 % off & more.txt')).toBeVisible();
  await expect(page).toHaveTitle('2026 – Syncline');
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'to bob.md')).toBeVisible();
  await page.getByRole('navigation', { name: 'Path' }).getByRole('link', { name: 'Notes' }).click();
  await expect(row(page, 'größe.csv')).toBeVisible();
});

test('names of files are never asked of the server as addresses of pages', async ({ page }) => {
  const pages: string[] = [];
  page.on('request', (request) => {
    if (request.isNavigationRequest()) pages.push(new URL(request.url()).pathname);
  });
  await openNotes(page);
  await row(page, 'Letters').dblclick();
  await expect(row(page, 'to bob.md')).toBeVisible();
  await page.reload();
  await expect(row(page, 'to bob.md')).toBeVisible();
  expect(new Set(pages)).toEqual(new Set(['/']));
});

test('a folder is made, renamed and brought back under its name by Undo, by keyboard alone', async ({
  page,
}) => {
  await openNotes(page);
  await page.keyboard.press('Alt+n');
  await page.keyboard.type('plan.txt');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('“plan.txt” is there already.');
  await page.getByLabel('Name', { exact: true }).fill('Sketches');
  await page.keyboard.press('Enter');
  await expect(row(page, 'Sketches')).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('grid')).toBeFocused();
  await page.keyboard.press('F2');
  await page.keyboard.type('Drawings');
  await page.keyboard.press('Enter');
  await expect(row(page, 'Drawings')).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByText('Renamed to “Drawings”')).toBeVisible();
  await expect(page.getByRole('grid')).toBeFocused();
  await page.keyboard.press('Control+z');
  await expect(row(page, 'Sketches')).toBeVisible();
  expect((await ada.node(workspace, 'Sketches'))?.kind).toBe('folder');
  await ada.delete(workspace, 'Sketches');
});

test('a key that is pressed before it is known what somebody may do is no less obeyed', async ({
  page,
}) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route(`**/api/v1/workspaces/${workspace}`, async (route) => {
    await held;
    await route.continue();
  });
  await openNotes(page, 'bob');
  await page.keyboard.press('Alt+n');
  await page.keyboard.type('Not mine');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('You may view this workspace');
  release();
  await expect(page.getByText('View only')).toBeVisible();
  await expect(page.getByRole('button', { name: 'New folder' })).toHaveCount(0);
  expect(await ada.node(workspace, 'Not%20mine')).toBeNull();
});

test('what comes between the reading of a folder and the listening for news is shown, too', async ({
  page,
}) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/events', async (route) => {
    await held;
    await route.continue();
  });
  await openNotes(page);
  await ada.makeFolder(workspace, 'Meanwhile');
  release();
  await expect(row(page, 'Meanwhile')).toBeVisible({ timeout: 10_000 });
  await ada.delete(workspace, 'Meanwhile');
  await expect(row(page, 'Meanwhile')).toHaveCount(0);
});

test('a folder that was deleted with everything in it comes back whole', async ({ page }) => {
  await openNotes(page);
  await row(page, 'Letters').click();
  await page.keyboard.press('Delete');
  await expect(page.getByText('“Letters” deleted')).toBeVisible();
  await expect(row(page, 'Letters')).toHaveCount(0);
  expect(await ada.node(workspace, 'Letters')).toBeNull();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(row(page, 'Letters')).toBeVisible();
  await expect(page.getByText('Undone')).toBeVisible();
  const found = await ada.node(workspace, 'Letters/2026/10%20%25%20off%20%26%20more.txt');
  expect(found?.size).toBe(4);
});

test('what others change shows by itself, and the selection stays', async ({ page }) => {
  await openNotes(page);
  await row(page, 'plan.txt').click();
  await ada.putFile(workspace, 'aaa.txt', new Blob(['new']));
  await expect(row(page, 'aaa.txt')).toBeVisible();
  await expect(row(page, 'plan.txt')).toHaveAttribute('aria-selected', 'true');
  await ada.delete(workspace, 'aaa.txt');
  await expect(row(page, 'aaa.txt')).toHaveCount(0);
});

test('a folder that somebody deletes elsewhere is not shown any more', async ({ page }) => {
  await ada.makeFolder(workspace, 'Gone');
  await ada.putFile(workspace, 'Gone/inside.txt', new Blob(['x']));
  await openNotes(page);
  await row(page, 'Gone').dblclick();
  await expect(row(page, 'inside.txt')).toBeVisible();
  await ada.delete(workspace, 'Gone');
  await expect(page.getByRole('alert')).toContainText('It is not there any more.');
  await expect(row(page, 'inside.txt')).toHaveCount(0);
});

test('a file is downloaded as it is, and so is an older version of it, which can be restored', async ({
  page,
}) => {
  await ada.putFile(workspace, 'plan.txt', new Blob(['second']));
  for (const text of ['one', 'two']) await ada.putFile(workspace, 'other.txt', new Blob([text]));
  await openNotes(page);
  const download = page.waitForEvent('download');
  await row(page, 'plan.txt').click();
  await page.getByRole('button', { name: 'Download' }).click();
  expect(readFileSync(await (await download).path(), 'utf8')).toBe('second');
  await page.getByRole('grid').focus();
  await page.keyboard.press('Alt+i');
  const pane = page.getByRole('complementary');
  await expect(pane.getByText('Version 2')).toBeVisible();
  await expectAccessible(page);
  const older = page.waitForEvent('download');
  await pane.getByRole('button', { name: 'Download: Version 1' }).click();
  expect(readFileSync(await (await older).path(), 'utf8')).toBe('first');
  await pane.getByRole('button', { name: 'Restore: Version 1' }).click();
  await expect(pane.getByText('Version 3')).toBeVisible();
  const { body } = await ada.file(workspace, 'plan.txt');
  expect(await new Response(body).text()).toBe('first');
  // It is taken back of the file that it was of, also where the pane shows another one by now.
  await row(page, 'other.txt').click();
  await page.keyboard.press('Alt+i');
  await expect(pane.getByRole('heading', { name: 'other.txt' })).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect
    .poll(async () => (await ada.versions(workspace, 'plan.txt')).versions.length)
    .toBe(4);
  expect((await ada.versions(workspace, 'other.txt')).versions).toHaveLength(2);
  await row(page, 'plan.txt').click();
  await page.keyboard.press('Alt+i');
  await expect(pane.getByText('Version 4')).toBeVisible();
  await pane.getByRole('button', { name: 'Close' }).click();
  await expect(page.getByRole('grid')).toBeFocused();
});

test('who may only view sees no button that changes anything', async ({ page }) => {
  await openNotes(page, 'bob');
  await row(page, 'plan.txt').click();
  await expect(page.getByRole('button', { name: 'Download' })).toBeVisible();
  for (const name of ['Delete', 'Rename', 'Upload files', 'New folder']) {
    await expect(page.getByRole('button', { name })).toHaveCount(0);
  }
  await page.keyboard.press('Delete');
  await page.keyboard.press('F2');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  expect(await ada.node(workspace, 'plan.txt')).not.toBeNull();
});

test('an encrypted workspace is named as such, and is not among those that the server reads', async ({
  page,
}) => {
  const sealed = (await ada.workspaces()).find(({ id, name }) => id === name);
  await signIn(page);
  await expect(page.getByText('Encrypted workspace')).toBeVisible();
  await expect(page.getByRole('link', { name: /Secrets/ })).toHaveCount(0);
  await page.goto(`${server.url}/#/w/${sealed?.id}`);
  await expect(page.getByRole('alert')).toContainText('This workspace is encrypted.');
});

test('a folder of several pages is read to its end, in the order of the numbers in its names', async ({
  page,
}) => {
  await signIn(page);
  await page.getByRole('link', { name: 'Many' }).click();
  await expect(page.getByText('2,345 items')).toBeVisible();
  await page.getByRole('grid').focus();
  const changes = await page.getByRole('grid').evaluateHandle((grid) => {
    const found = { comings: 0 };
    const count = (records: MutationRecord[]) => (found.comings += records.length);
    new MutationObserver(count).observe(grid, { subtree: true, childList: true });
    return found;
  });
  for (let time = 0; time < 5; time++) await page.keyboard.press('PageDown');
  expect(await changes.evaluate(({ comings }) => comings)).toBe(0);
  await page.keyboard.press('End');
  await expect(row(page, '2344.txt')).toBeVisible();
  await expect(page.getByRole('grid')).toHaveAttribute('aria-rowcount', '2346');
  await expect(async () => {
    await page.waitForTimeout(800);
    await page.keyboard.type('999');
    const selected = row(page, '999.txt');
    expect(await selected.getAttribute('aria-selected', { timeout: 1_000 })).toBe('true');
  }).toPass();
  await page.keyboard.press('Delete');
  await expect(page.getByText('2,344 items')).toBeVisible();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('Delete 2,344 items?');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Keep' }).click();
  await expect(page.getByText('2,344 items selected')).toBeVisible();
});

test('while the server is away this is said, and when it is back the list is, too', async ({
  page,
}) => {
  await openNotes(page);
  await server.halt();
  await expect(page.getByText('No live updates. Reconnecting …')).toBeVisible();
  await row(page, 'Letters').dblclick();
  await expect(page.getByRole('alert')).toContainText('The server cannot be reached');
  await server.run();
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(row(page, 'to bob.md')).toBeVisible();
  await expect(page.getByText('No live updates')).toHaveCount(0);
});

test('a session that was ended elsewhere leads to the sign-in', async ({ page }) => {
  let reads = 0;
  page.on('response', (response) => {
    if (/\/folders(\?|$)/.test(response.url())) reads++;
  });
  await openNotes(page);
  // The list is read once more where the news begin; only then it is the press that asks the server.
  await expect.poll(() => reads).toBeGreaterThanOrEqual(2);
  await page.evaluate(async () => {
    const kept = JSON.parse(sessionStorage.getItem('syncline.session') ?? '{}') as {
      token: string;
    };
    await fetch('/api/v1/logout', {
      method: 'POST',
      headers: { authorization: `Bearer ${kept.token}` },
    });
  });
  await row(page, 'Letters').dblclick();
  await expect(page.getByText('This browser was signed out.')).toBeVisible();
});

test('axe-core finds nothing in the list, the dialogs and the sheets, in light and dark, wide and narrow', async ({
  page,
}) => {
  await openNotes(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await expectAccessible(page);
      await page.getByRole('grid').focus();
      await page.keyboard.press('?');
      await expect(page.getByRole('dialog')).toContainText('Keyboard shortcuts');
      await expectAccessible(page);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Settings' }).click();
      await expectAccessible(page);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Alt+n');
      await expectAccessible(page);
      await page.keyboard.press('Escape');
      await expect(page.getByRole('dialog')).toHaveCount(0);
    }
  }
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true });

  test('a tap enters a folder, its box selects, and nothing is wider than the screen', async ({
    page,
  }) => {
    await openNotes(page);
    await row(page, 'Letters').tap();
    await expect(row(page, 'to bob.md')).toBeVisible();
    await row(page, 'to bob.md').locator('[data-check]').tap();
    await expect(page.getByText('1 item selected')).toBeVisible();
    await row(page, '2026').tap();
    await expect(page.getByText('2 items selected')).toBeVisible();
    await expectAccessible(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(320);
    const small = await page
      .getByRole('toolbar')
      .getByRole('button')
      .evaluateAll(
        (buttons) => buttons.filter((button) => button.getBoundingClientRect().height < 44).length,
      );
    expect(small).toBe(0);
  });
});
