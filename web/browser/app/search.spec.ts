// Files and folders found by their names: once by mouse, once by keyboard alone.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row } from '../steps.ts';
import { expect, test } from '../test.ts';

/** What a name does not become: an element, an attribute, a template; and it turns the direction of what follows. */
const HOSTILE = `"'><img src=x onerror="window.broken=1">{{broken}}\u202eplan.txt`;

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  const many = Array.from({ length: 120 }, (_, index) => `Many/entry ${String(index)}.txt`);
  server.addWorkspace('ada', 'Notes', {
    'Plans/2026/PLÄN b.txt': 'b',
    'my plan.odt': 'mine',
    'airplane.jpg': 'jpg',
    'other.txt': 'other',
    [`Letters/${HOSTILE}`]: 'hostile',
    ...Object.fromEntries(many.map((path) => [path, 'x'])),
  });
  server.addWorkspace('ada', 'Secrets', { 'plan.txt': 'a', 'Letters/2026/old plan.txt': 'b' }, [
    '--sealed',
  ]);
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Notes')?.id ?? '';
});

test.afterAll(() => server.end());

const dialog = (page: Page) => page.getByRole('dialog');
const hits = (page: Page) => dialog(page).getByRole('option');
const field = (page: Page) => dialog(page).getByRole('combobox');
const status = (page: Page) => dialog(page).getByRole('status').first();

test('a file is found by mouse, and chosen in its folder; a folder is entered', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.getByRole('button', { name: 'Search' }).click();
  await expect(dialog(page)).toContainText('Search in Notes');
  await field(page).fill('plan');
  await expect(hits(page)).toHaveCount(5);
  await expect(status(page)).toHaveText('5 found');
  expect(await hits(page).locator('.name').allTextContents()).toEqual([
    'PLÄN b.txt',
    'Plans',
    HOSTILE.replace('\u202e', '\\u{202e}'),
    'my plan.odt',
    'airplane.jpg',
  ]);
  await expect(hits(page).first().locator('mark')).toHaveText('PLÄN');
  await expect(hits(page).first()).toContainText('Plans/2026');
  await expect(hits(page).nth(3)).toContainText('Notes');
  await expect(hits(page).nth(3)).toContainText('4 B');
  await expect(hits(page).nth(2).locator('mark')).toHaveText('plan');
  const broken = await page.evaluate(
    () => 'broken' in window || document.querySelector('img[src="x"], [onerror]') !== null,
  );
  expect(broken).toBe(false);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await inEveryLook(page, () => expectAccessible(page));
  await hits(page).first().click();
  await expect(page).toHaveURL(new RegExp(`#/w/${workspace}/Plans/2026$`));
  await expect(row(page, 'PLÄN b.txt')).toHaveAttribute('aria-selected', 'true');
  await page.getByRole('button', { name: 'Search' }).click();
  await field(page).fill('PLANS');
  await hits(page).first().click();
  await expect(page).toHaveURL(new RegExp(`#/w/${workspace}/Plans$`));
  await expect(row(page, '2026')).toBeVisible();
});

test('a file far down in a folder is found by keyboard alone, before the answer is there', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.press('/');
  await expect(field(page)).toBeFocused();
  await page.keyboard.type('entry');
  await expect(status(page)).toHaveText('50 found and there are more');
  await expect(hits(page).first()).toHaveAttribute('aria-selected', 'true');
  for (let step = 0; step < 7; step++) await page.keyboard.press('PageDown');
  await expect(status(page)).toHaveText('100 found and there are more');
  const active = await field(page).getAttribute('aria-activedescendant');
  await expect(page.locator(`[id="${active ?? ''}"]`)).toBeInViewport();
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toHaveCount(0);
  await expect(page.getByRole('grid')).toBeFocused();

  await page.keyboard.press('Control+k');
  await page.keyboard.type('119 entry');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`#/w/${workspace}/Many$`));
  await expect(row(page, 'entry 119.txt')).toBeInViewport();
  await expect(row(page, 'entry 119.txt')).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('grid')).toBeFocused();
  // In the folder that is open, too.
  await page.keyboard.press('Control+k');
  await page.keyboard.type('entry 3.txt');
  await expect(hits(page).first()).toContainText('entry 3.txt');
  await page.keyboard.press('Enter');
  await expect(row(page, 'entry 3.txt')).toHaveAttribute('aria-selected', 'true');
  await expect(row(page, 'entry 119.txt')).toHaveCount(0);
});

test('what is not there is said, and a server that is away is asked again', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.press('Control+k');
  await expect(field(page)).toBeFocused();
  await page.keyboard.type('invoce');
  await expect(status(page)).toHaveText('Nothing in Notes is called “invoce”.');
  await inEveryLook(page, () => expectAccessible(page));
  await page.route('**/search?*', (route) => route.abort());
  await field(page).fill('other');
  await expect(dialog(page).getByRole('alert')).toBeVisible();
  await expect(hits(page)).toHaveCount(0);
  await page.unroute('**/search?*');
  await dialog(page).getByRole('button', { name: 'Try again' }).click();
  await expect(hits(page)).toHaveCount(1);
  await expect(dialog(page).getByRole('alert')).toHaveCount(0);
});

test('what is typed behind the shortcut is not lost while the dialog is on its way', async ({
  page,
}) => {
  await page.route('**/SearchDialog-*.js', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await route.continue();
  });
  await openWorkspace(page, server, 'ada', 'Notes');
  await expect(row(page, 'other.txt')).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('othex');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('r');
  await expect(field(page)).toHaveValue('other');
  await page.keyboard.type('.txt');
  await expect(field(page)).toHaveValue('other.txt');
  await expect(hits(page)).toHaveCount(1);
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toHaveCount(0);
  await page.keyboard.press('Control+k');
  await expect(field(page)).toHaveValue('');
});

test('who closes the search and is quick finds it open again', async ({ page }) => {
  // A browser says that a dialog has closed in a task of its own: here late.
  await page.addInitScript(() => {
    const late = new WeakSet<Event>();
    const delay = (event: Event) => {
      if (late.has(event) || !(event.target instanceof HTMLDialogElement)) return;
      event.stopImmediatePropagation();
      const [again, { target }] = [new Event('close'), event];
      late.add(again);
      setTimeout(() => target?.dispatchEvent(again), 300);
    };
    window.addEventListener('close', delay, { capture: true });
  });
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.press('Control+k');
  await expect(field(page)).toBeFocused();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await expect(field(page)).toBeFocused();
  await page.waitForTimeout(500);
  await expect(field(page)).toBeFocused();
});

test('questions that nobody waits for any more are broken off', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  const [asked, failed]: [string[], string[]] = [[], []];
  const queryOf = (url: string) => new URL(url).searchParams.get('q') ?? '';
  page.on('request', (one) => one.url().includes('/search?') && asked.push(queryOf(one.url())));
  page.on('requestfailed', (one) => failed.push(queryOf(one.url())));
  await page.route('**/search?q=slow*', () => new Promise(() => undefined));
  await page.keyboard.press('Control+k');
  await field(page).pressSequentially('slow', { delay: 10 });
  await expect.poll(() => asked).toEqual(['slow']);
  await field(page).fill('other');
  await expect(hits(page)).toHaveCount(1);
  expect(asked).toEqual(['slow', 'other']);
  expect(failed).toEqual(['slow']);
});

test('an encrypted workspace is searched by the browser alone, once it is open', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.goto(`${server.url}/#/`);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await expect(page.getByLabel('Passphrase')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Search' })).toHaveCount(0);
  await page.keyboard.press('Control+k');
  await expect(dialog(page)).toHaveCount(0);
  await page.getByLabel('Passphrase').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'Letters')).toBeVisible();

  const said: string[] = [];
  page.on('request', (one) => said.push(`${one.url()} ${one.postData() ?? ''}`));
  await page.keyboard.press('Control+k');
  await expect(dialog(page)).toContainText('Search in Secrets');
  await expect(field(page)).toBeFocused();
  await page.keyboard.type('PLAN');
  await expect(hits(page)).toHaveCount(2);
  await expect(hits(page).first()).toContainText('plan.txt');
  await expect(hits(page).first()).toContainText('Secrets');
  await expect(hits(page).first().locator('mark')).toHaveText('plan');
  await expect(hits(page).nth(1)).toContainText('Letters/2026');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(row(page, 'old plan.txt')).toHaveAttribute('aria-selected', 'true');
  await expect(page).toHaveURL(/#\/e\/[^/]+\/[0-9a-f]{32}$/);
  expect(said.filter((one) => /api.*(search|plan)/i.test(one))).toEqual([]);

  await page.keyboard.press('Control+k');
  await field(page).fill('nothing of it');
  await expect(status(page)).toHaveText('Nothing in Secrets is called “nothing of it”.');
});
