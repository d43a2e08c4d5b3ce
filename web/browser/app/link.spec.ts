import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import type { NewLink, SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, row } from '../steps.ts';
import { expect, test } from '../test.ts';

// Every page here is that of a browser profile which nobody has ever signed in.
let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Private name', {
    'plan.txt': 'the plan',
    'Letters/to bob.md': 'Dear Bob',
    'Letters/2026/10 % off & more.txt': 'sale',
    'Letters/<img src=x onerror=alert(1)>.txt': 'hostile',
  });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

async function link(path: string, more: NewLink = {}): Promise<{ id: string; address: string }> {
  const params = { workspace };
  const body = { path, ...more };
  const made = await ada.call('POST /workspaces/{workspace}/links', { params, body });
  return { id: made.id, address: `${server.url}/#/s/${made.secret}` };
}

/** The content of what the page saves after a click. */
async function savedBy(page: Page, click: () => Promise<void>): Promise<[string, Buffer]> {
  const download = page.waitForEvent('download');
  await click();
  const saved = await download;
  return [saved.suggestedFilename(), readFileSync(await saved.path())];
}

test('a file behind a password is shown and saved, and the secret is in no address of a page', async ({
  page,
}) => {
  const { address } = await link('plan.txt', { password: 'open sesame' });
  const pages: string[] = [];
  page.on('request', (request) => {
    if (request.isNavigationRequest()) pages.push(request.url());
  });
  await page.goto(address);
  await expect(page.getByText('This link has a password')).toBeVisible();
  await expect(page.getByText('plan.txt')).toHaveCount(0);
  await expect(page.getByLabel('Password')).toBeFocused();
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.type('close sesame');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('That is not the password.');
  await page.keyboard.type('open sesame');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'plan.txt' })).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  const button = page.getByRole('button', { name: 'Download' });
  const [name, content] = await savedBy(page, () => button.click());
  expect([name, content.toString()]).toEqual(['plan.txt', 'the plan']);
  const preview = page.getByRole('dialog', { name: 'Preview of “plan.txt”' });
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(preview.getByText('the plan')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('Escape');
  await expect(page.getByRole('button', { name: 'Preview' })).toBeFocused();
  expect(pages.map((url) => new URL(url).pathname)).toEqual(['/']);
  // A browser leaves out what stands behind the `#`; nothing of the secret is kept either.
  expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
});

test('who goes elsewhere while a password is tried sees what is there', async ({ page }) => {
  const { address } = await link('Letters', { password: 'open sesame' });
  await page.goto(address);
  await page.goto(`${address}/2026`);
  await expect(page.getByLabel('Password')).toBeFocused();
  let release: (() => void) | undefined;
  await page.route('**/unlock', async (route) => {
    await new Promise<void>((resolve) => (release = resolve));
    await route.continue();
  });
  await page.keyboard.type('open sesame');
  await page.keyboard.press('Enter');
  await expect.poll(() => release).toBeDefined();
  await page.goBack();
  release?.();
  await expect(row(page, 'to bob.md')).toBeVisible();
  await expect(row(page, '10 % off')).toHaveCount(0);
});

test('a folder is walked by keyboard, its files are saved, and all of it as a ZIP file', async ({
  page,
}) => {
  const { address } = await link('Letters', { expires_in_seconds: 86_400 });
  await page.goto(address);
  await expect(row(page, 'to bob.md')).toBeVisible();
  await expect(page.getByText('Private name')).toHaveCount(0);
  await expect(row(page, '<img src=x onerror=alert(1)>.txt')).toBeVisible();
  await expect(page.getByText(/^Available until/)).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('grid').focus();
  await page.keyboard.type('to bob');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog').getByText('Dear Bob')).toBeVisible();
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByRole('dialog').getByText('hostile')).toBeVisible();
  await page.keyboard.press('Escape');
  // The list goes on where somebody has looked last.
  await expect(row(page, '<img src=x')).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('grid')).toBeFocused();
  await page.keyboard.type('2026');
  await page.keyboard.press('Enter');
  await expect(page).toHaveTitle('2026 – Syncline');
  const inner = row(page, '10 % off & more.txt');
  await expect(inner).toBeVisible();
  await page.reload();
  await inner.click();
  const [name, content] = await savedBy(page, () =>
    page.getByRole('button', { name: 'Download', exact: true }).click(),
  );
  expect([name, content.toString()]).toEqual(['10 % off & more.txt', 'sale']);
  await page.getByRole('grid').focus();
  await page.keyboard.press('Alt+ArrowUp');
  await expect(row(page, 'to bob.md')).toBeVisible();
  const [zipName, zip] = await savedBy(page, () =>
    page.getByRole('button', { name: 'Download all as ZIP' }).click(),
  );
  expect(zipName).toBe('Letters.zip');
  const listed = spawnSync(
    'python3',
    [
      '-c',
      'import sys,io,zipfile;z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()));assert z.testzip() is None;print(*sorted(z.namelist()),sep="\\n")',
    ],
    { input: zip, encoding: 'utf8' },
  );
  expect(listed.stdout).toContain('to bob.md');
  expect(listed.stdout).toContain('10 % off & more.txt');
});

test('a link that is expired, revoked or made up says kindly that it leads nowhere', async ({
  page,
}) => {
  const short = await link('plan.txt', { expires_in_seconds: 1 });
  const revoked = await link('plan.txt');
  await page.goto(revoked.address);
  await expect(page.getByRole('heading', { name: 'plan.txt' })).toBeVisible();
  await ada.call('DELETE /workspaces/{workspace}/links/{link}', {
    params: { workspace, link: revoked.id },
  });
  // What was on the screen before it was revoked is saved no more.
  await page.getByRole('button', { name: 'Download' }).click();
  await expect(page.getByText('This link leads nowhere any more.')).toBeVisible();
  await expect(page.getByRole('heading', { name: 'This link leads nowhere' })).toBeVisible();
  const state = async () => {
    const found = await ada.call('GET /workspaces/{workspace}/links', { params: { workspace } });
    return found.find(({ id }) => id === short.id)?.state;
  };
  await expect.poll(state).toBe('expired');
  for (const address of [revoked.address, short.address, `${server.url}/#/s/${'A'.repeat(43)}`]) {
    await page.goto(address);
    await page.reload();
    await expect(page.getByRole('heading', { name: 'This link leads nowhere' })).toBeVisible();
  }
  await inEveryLook(page, () => expectAccessible(page));
});

test('a link for one download gives the file once, and then nothing', async ({ page }) => {
  const { address } = await link('plan.txt', { downloads_max: 1 });
  await page.goto(address);
  const button = page.getByRole('button', { name: 'Download' });
  // To look would use it up.
  await expect(page.getByRole('button', { name: 'Preview' })).toHaveCount(0);
  const [, content] = await savedBy(page, () => button.click());
  expect(content.toString()).toBe('the plan');
  await page.reload();
  await expect(page.getByText('downloaded as often as it may be')).toBeVisible();
});

test('a folder that is not there any more is said, with the way back', async ({ page }) => {
  const { address } = await link('Letters');
  await page.goto(`${address}/nowhere`);
  await expect(page.getByRole('alert')).toContainText('It is not there any more.');
  await page.getByRole('link', { name: 'Shared folder' }).click();
  await expect(row(page, 'to bob.md')).toBeVisible();
});
