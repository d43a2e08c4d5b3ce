// A server that lies about the history of an encrypted workspace: it leaves entries out, says them twice, in another order or changed, or shows
// an older history than before, or says that it is not encrypted. Each lie is refused and said, nothing of it is shown, and the truth is read
// again when it is told.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { card, edit, givePicked, keepInSync, look } from '../picked.ts';
import { LyingProxy, type Lie } from '../proxy.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let proxy: LyingProxy;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  proxy = await new LyingProxy(server.url).listen();
  server.addUser('ada');
  server.addWorkspace('ada', 'Diary', { 'letter.txt': 'first' }, ['--sealed']);
  for (const text of ['second', 'third', 'fourth']) {
    server.write('ada', 'Diary', 'letter.txt', `${text} version`);
  }
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(async () => {
  await proxy.end();
  await server.end();
});

test.beforeEach(() => proxy.lie());

const head = async () => (await ada.workspace(workspace)).head_seq;

/** Answers each question for entries by one that the server has: `shown` says which, by the number after which was asked. */
function entries(shown: (since: number) => number, change = (bytes: Buffer) => bytes): Lie {
  return ({ pathname, searchParams }, ask) => {
    if (!pathname.endsWith('/log')) return null;
    const since = shown(Number(searchParams.get('since') ?? 0));
    return ask(`${pathname}?since=${since}&length_max=1`).then(change);
  };
}

async function open(page: Page): Promise<void> {
  await signIn(page, proxy, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await unlock(page);
}

async function unlock(page: Page): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
}

/** What is refused is said, nothing of it is shown, and the truth is read when it is told. */
async function expectRefused(page: Page, text: string | RegExp): Promise<void> {
  await expect(page.getByRole('alert')).toContainText(text);
  await expect(page.getByText('letter.txt')).toHaveCount(0);
  proxy.lie();
  await page.getByRole('button', { name: 'Lock now' }).click();
  await unlock(page);
  await expect(row(page, 'letter.txt')).toContainText('14 B');
}

test('through the proxy all is as without it', async ({ page }) => {
  await open(page);
  await expect(row(page, 'letter.txt')).toContainText('14 B');
  expect(await head()).toBeGreaterThanOrEqual(4);
});

for (const [what, shown] of [
  ['that is left out', (since: number) => (since >= 2 ? since + 1 : since)],
  ['at the beginning that is left out', (since: number) => since + 1],
  ['that is said twice', (since: number) => Math.min(since, 2)],
  ['said before the one it follows', (since: number) => [0, 2, 1, 3][since] ?? since],
] as const) {
  test(`an entry ${what} is refused`, async ({ page }) => {
    proxy.lie(entries(shown));
    await open(page);
    await expectRefused(page, 'history');
  });
}

test('an entry with a byte changed is refused, wherever that is', async ({ page }) => {
  const change = (bytes: Buffer) => {
    bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 1;
    return bytes;
  };
  proxy.lie(entries((since) => since, change));
  await open(page);
  await expectRefused(page, /made by nobody who may write|history/);
});

test('an older history than was read before is refused, also after the page was loaded anew', async ({
  page,
}) => {
  await open(page);
  await expect(row(page, 'letter.txt')).toContainText('14 B');
  const last = await head();
  // The server goes back to what it was two versions before: nobody can tell by what it shows, only by what it has shown.
  const older = entries((since) => (since >= last - 2 ? last : since));
  for (const again of [false, true]) {
    proxy.lie(older);
    if (again) {
      await page.reload();
    } else {
      await page.getByRole('button', { name: 'Lock now' }).click();
    }
    await unlock(page);
    await expectRefused(page, 'older');
  }
});

test('another history than was read before is refused, until somebody says that the server was set back', async ({
  page,
}) => {
  await open(page);
  await expect(row(page, 'letter.txt')).toContainText('14 B');
  // As if this browser had read another entry of that number: nobody can make one without the keys of a device.
  const key = `syncline.sealed-head.${workspace}`;
  const kept = await page.evaluate((key) => localStorage.getItem(key), key);
  expect(kept).toMatch(/^\d+ [0-9a-f]{64}$/);
  const other = `${(await head()) - 1} ${'0'.repeat(64)}`;
  for (const isAccepted of [false, true]) {
    await page.evaluate(([key, other]) => localStorage.setItem(key, other), [key, other] as const);
    await page.getByRole('button', { name: 'Lock now' }).click();
    await unlock(page);
    await expect(page.getByRole('alert')).toContainText('another history');
    await expect(page.getByText('letter.txt')).toHaveCount(0);
    if (!isAccepted) continue;
    await page.getByRole('button', { name: 'The server was set back' }).click();
    await expect(row(page, 'letter.txt')).toContainText('14 B');
    expect(await page.evaluate((key) => localStorage.getItem(key), key)).toBe(kept);
  }
});

test('that it is not encrypted is not believed of a workspace that was opened here: nothing is shown of it or sent to it', async ({
  page,
}) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(`${request.method()} ${request.url()}`));
  await open(page);
  await expect(row(page, 'letter.txt')).toContainText('14 B');
  const plain = (bytes: Buffer) =>
    Buffer.from(bytes.toString().replaceAll('"mode":"sealed"', '"mode":"plain"'));
  proxy.lie(({ pathname }, ask) =>
    /\/workspaces(\/\w+)?$/.test(pathname) ? ask(pathname).then(plain) : null,
  );
  // Also for who comes anew, and by an address of plain workspaces.
  for (const address of ['#/', `#/w/${workspace}`, `#/f/${workspace}`, `#/t/${workspace}`]) {
    await page.goto('about:blank');
    await page.goto(`${proxy.url}/${address}`);
    await expect(page.getByRole('alert').first()).toContainText(
      /calls a workspace plain|is encrypted/,
    );
    await expect(page.getByRole('link', { name: workspace.slice(0, 8) })).toHaveCount(0);
  }
  const doors =
    /\/api\/v1\/workspaces\/\w+\/(files|folders|nodes|uploads|delta|chunks|deleted|search|versions)\b/;
  expect(asked.filter((url) => doors.test(url))).toEqual([]);

  proxy.lie();
  await page.goto(`${proxy.url}/#/`);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await unlock(page);
  await expect(row(page, 'letter.txt')).toContainText('14 B');
});

test('an older history takes nothing from a folder that is in sync, while it runs and after the page was loaded anew', async ({
  page,
}) => {
  await givePicked(page);
  await open(page);
  await expect(row(page, 'letter.txt')).toBeVisible();
  await keepInSync(page);
  const before = { 'letter.txt': 'fourth version' };
  expect(await look(page)).toEqual(before);

  await edit(page, 'more.txt', 'written here');
  await expect(card(page)).toContainText('1 file sent');
  // As if nothing came after what was read, and only the genesis were there for who reads anew: a folder that believed that would be emptied.
  const next = (await head()) + 1;
  proxy.lie(entries(() => next));
  const asked = page.waitForResponse(/\/log\?/);
  server.write('ada', 'Diary', 'letter.txt', 'fifth version');
  await asked;
  await expect(card(page)).toContainText('In sync, watching');
  expect(await look(page)).toEqual({ ...before, 'more.txt': 'written here' });
  await page.reload();
  await page.goto(`${proxy.url}/#/e/${workspace}`);
  await unlock(page);
  await expect(page.getByRole('alert').first()).toContainText('older');
  await page.goto(`${proxy.url}/#/sync`);
  await expect(card(page)).not.toContainText('In sync');
  expect(await look(page)).toEqual({ ...before, 'more.txt': 'written here' });

  proxy.lie();
  await page.goto(`${proxy.url}/#/e/${workspace}`);
  await page.getByRole('button', { name: 'Lock now' }).click();
  await unlock(page);
  await expect(row(page, 'more.txt')).toBeVisible();
  await page.goto(`${proxy.url}/#/sync`);
  await expect(card(page)).toContainText('In sync, watching');
  await expect
    .poll(() => look(page))
    .toMatchObject({ 'letter.txt': 'fifth version', 'more.txt': 'written here' });
});

test('what a server has lost that was set back stays in a folder that is in sync', async ({
  page,
}) => {
  for (const text of ['sixth', 'seventh']) {
    server.write('ada', 'Diary', 'letter.txt', `${text} version`);
  }
  await givePicked(page);
  await open(page);
  await expect(row(page, 'letter.txt')).toBeVisible();
  await keepInSync(page);
  expect((await look(page))['letter.txt']).toBe('seventh version');
  const last = await head();
  proxy.lie(entries((since) => (since >= last - 1 ? last : since)));
  await page.reload();
  await page.goto(`${proxy.url}/#/e/${workspace}`);
  await unlock(page);
  await expect(page.getByRole('alert').first()).toContainText('older');
  await page.getByRole('button', { name: 'The server was set back' }).click();
  await expect(row(page, 'letter.txt')).toContainText('13 B');
  await page.goto(`${proxy.url}/#/sync`);
  await card(page).getByRole('button', { name: 'Sync now' }).click();
  await expect.poll(async () => (await look(page))['letter.txt']).toBe('sixth version');
  expect(Object.values(await look(page))).toContain('seventh version');
});
