import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';
import { countSent } from '../wire.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Box', { 'plan.txt': 'old' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

async function openBox(page: Page, { stays = false } = {}): Promise<void> {
  await page.goto(server.url);
  await page.getByLabel('User').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  if (stays) await page.getByLabel('Stay signed in').check();
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'Box' }).click();
  await expect(page.getByRole('grid')).toBeVisible();
}

const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });
const picker = (page: Page) => page.locator('input[type=file]').first();

async function content(path: string): Promise<Buffer> {
  const { body } = await ada.file(workspace, path);
  return Buffer.from(await new Response(body).arrayBuffer());
}

function file(name: string, buffer: Buffer) {
  return { name, mimeType: 'application/octet-stream', buffer };
}

test('small files and one in many pieces arrive as they are', async ({ page }) => {
  const large = randomBytes(11_000_000);
  await openBox(page);
  await picker(page).setInputFiles([
    file('empty.bin', Buffer.alloc(0)),
    file('ünïcode & 100 %.txt', Buffer.from('hello')),
    file('large.bin', large),
  ]);
  await expect(tray(page)).toContainText('3 of 3 files');
  await expectAccessible(page);
  await expect(row(page, 'large.bin')).toContainText('10.5 MiB');
  expect(sum(await content('large.bin'))).toBe(sum(large));
  expect((await content('%C3%BCn%C3%AFcode%20%26%20100%20%25.txt')).toString()).toBe('hello');
  expect((await ada.node(workspace, 'empty.bin'))?.size).toBe(0);
  await page.getByRole('button', { name: 'Clear finished' }).click();
  await expect(tray(page)).toHaveCount(0);
});

test('a file of the same name replaces nothing before somebody says so', async ({ page }) => {
  await openBox(page);
  await picker(page).setInputFiles([file('plan.txt', Buffer.from('new'))]);
  await expect(tray(page)).toContainText('A file of this name is there already.');
  expect((await content('plan.txt')).toString()).toBe('old');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Keep both' }).click();
  await expect(row(page, 'plan (2).txt')).toBeVisible();
  expect((await content('plan.txt')).toString()).toBe('old');
  await picker(page).setInputFiles([file('plan.txt', Buffer.from('newer'))]);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(tray(page)).toContainText('2 of 2 files');
  expect((await content('plan.txt')).toString()).toBe('newer');
  expect((await ada.versions(workspace, 'plan.txt')).versions).toHaveLength(2);
});

test('who decides otherwise while a name is looked for is heard', async ({ page }) => {
  await ada.putFile(workspace, 'kept.txt', new Blob(['old']));
  await openBox(page);
  await picker(page).setInputFiles([file('kept.txt', Buffer.from('mine'))]);
  const keepBoth = page.getByRole('button', { name: 'Keep both' });
  await expect(keepBoth).toBeVisible();
  let release: (() => void) | undefined;
  await page.route('**/nodes/kept*', async (route) => {
    await new Promise<void>((resolve) => (release = resolve));
    await route.continue();
  });
  await keepBoth.click();
  await expect.poll(() => release).toBeDefined();
  await page.getByRole('button', { name: 'Skip' }).click();
  await expect(tray(page)).toContainText('Cancelled');
  const answered = page.waitForResponse('**/nodes/kept*');
  release?.();
  await answered;
  await picker(page).setInputFiles([file('next.txt', Buffer.from('next'))]);
  await expect(row(page, 'next.txt')).toBeVisible();
  await expect(tray(page)).toContainText('Cancelled');
  expect(await ada.node(workspace, 'kept%20(2).txt')).toBeNull();
  expect((await content('kept.txt')).toString()).toBe('old');
});

test('a folder that is chosen arrives with its folders', async ({ page }) => {
  const folder = join(mkdtempSync(join(tmpdir(), 'syncline-web-')), 'trip');
  mkdirSync(join(folder, 'day 1'), { recursive: true });
  for (const name of ['day 1/a.txt', 'day 1/b.txt', 'c.txt'])
    writeFileSync(join(folder, name), name);
  await openBox(page);
  await page.locator('input[webkitdirectory]').setInputFiles(folder);
  await expect(tray(page)).toContainText('3 of 3 files');
  expect((await content('trip/day%201/b.txt')).toString()).toBe('day 1/b.txt');
  expect((await content('trip/c.txt')).toString()).toBe('c.txt');
  rmSync(dirname(folder), { recursive: true });
});

test('a file that is dropped on the list is uploaded', async ({ page }) => {
  await openBox(page);
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['dropped'], 'dropped.txt'));
    return transfer;
  });
  await page.dispatchEvent('main', 'dragover', { dataTransfer: data });
  await expect(page.getByText('Drop to upload here')).toBeVisible();
  await page.dispatchEvent('main', 'drop', { dataTransfer: data });
  await expect(row(page, 'dropped.txt')).toBeVisible();
  expect((await content('dropped.txt')).toString()).toBe('dropped');
});

test('a transfer is cancelled, and one that failed is tried again', async ({ page }) => {
  await openBox(page);
  let isHeld = true;
  await page.route('**/uploads/*', async (route) => {
    if (route.request().method() === 'PATCH' && isHeld) return;
    await route.continue();
  });
  await picker(page).setInputFiles([file('held.bin', randomBytes(6_000_000))]);
  await expect(tray(page)).toContainText('0 %');
  await page.getByRole('button', { name: 'Cancel: held.bin' }).click();
  await expect(tray(page)).toContainText('Cancelled');
  isHeld = false;
  await page.route('**/files/refused.txt', (route) =>
    route.fulfill({
      status: 507,
      contentType: 'application/problem+json',
      body: JSON.stringify({ code: 'over_quota', title: 'full', detail: 'full' }),
    }),
  );
  await picker(page).setInputFiles([file('refused.txt', Buffer.from('refused'))]);
  await expect(tray(page)).toContainText('no room left');
  await page.unroute('**/files/refused.txt');
  await page.getByRole('button', { name: 'Retry: refused.txt' }).click();
  await expect(row(page, 'refused.txt')).toBeVisible();
  expect(await ada.node(workspace, 'held.bin')).toBeNull();
});

test('an upload goes on after the connection broke in the middle of it, and sends nothing twice', async ({
  page,
}) => {
  const large = randomBytes(13_000_000);
  await openBox(page);
  let pieces = 0;
  await page.route('**/uploads/*', async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    pieces += 1;
    return pieces === 2 ? route.abort('connectionreset') : route.continue();
  });
  await picker(page).setInputFiles([file('broken.bin', large)]);
  await expect(tray(page)).toContainText('Trying again');
  await expect(row(page, 'broken.bin')).toBeVisible();
  expect(sum(await content('broken.bin'))).toBe(sum(large));
  expect(pieces).toBe(5);
});

test('an upload that the server forgot when it was started again begins anew', async ({ page }) => {
  const large = randomBytes(9_000_000);
  await openBox(page);
  let pieces = 0;
  await page.route('**/uploads/*', async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue();
    pieces += 1;
    if (pieces === 2) {
      await server.halt();
      await server.run();
    }
    return route.continue();
  });
  await picker(page).setInputFiles([file('again.bin', large)]);
  await expect(row(page, 'again.bin')).toBeVisible();
  expect(sum(await content('again.bin'))).toBe(sum(large));
});

test('a changed file over the one that is there sends what has changed, and says so', async ({
  page,
}) => {
  const old = randomBytes(24_000_000);
  const put = await ada.putFile(workspace, 'film.bin', new Blob([new Uint8Array(old)]));
  const changed = Buffer.concat([
    old.subarray(0, 9_000_000),
    randomBytes(500),
    old.subarray(9_000_000),
  ]);
  changed[20_000_000] = (changed[20_000_000] ?? 0) ^ 1;
  const wire = countSent(page, (request) => request.url().includes('film.bin'));
  await openBox(page);
  await picker(page).setInputFiles([file('film.bin', changed)]);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(tray(page)).toContainText(/[\d.]+ (B|KiB) of 22\.9 MiB sent/);
  await expectAccessible(page);
  expect(sum(await content('film.bin'))).toBe(sum(changed));
  const sent = await wire.take();
  console.log(`a changed file of ${changed.length} B: ${sent} B up`);
  expect(sent).toBeGreaterThan(500);
  expect(sent).toBeLessThan(4096);
  const { versions } = await ada.versions(workspace, 'film.bin');
  expect(versions.length).toBe(2);
  expect((await ada.node(workspace, 'film.bin'))?.id).toBe(put.id);
});

/** What a page asks of a server about a file, and how many bytes go there. */
function watched(page: Page, name: string) {
  const asked: { what: string; length: Promise<string | null> }[] = [];
  page.on('requestfinished', (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.endsWith(name) && !pathname.endsWith('genesis')) return;
    const what = `${request.method()} ${pathname.split('/').at(-2) ?? ''}`;
    asked.push({ what, length: request.headerValue('content-length') });
  });
  return {
    whats: () => asked.splice(0).map(({ what }) => what),
    sum: async () =>
      (await Promise.all(asked.map(({ length }) => length))).reduce(
        (sum, length) => sum + Number(length),
        0,
      ),
  };
}

/** The versions of which the browser has a sketch, and how many bytes of each lie beside it. */
function sketches(page: Page): Promise<[unknown, number][]> {
  return page.evaluate(async () => {
    const of = <Answer>(request: IDBRequest<Answer>) =>
      new Promise<Answer>((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await of(indexedDB.open('syncline-sketches'));
    const store = database.transaction('sketches').objectStore('sketches');
    const [keys, found] = await Promise.all([of(store.getAllKeys()), of(store.getAll())]);
    database.close();
    return keys.map((key, at) => [key, (found as { old?: Blob }[])[at]?.old?.size ?? 0]);
  });
}

/** Damages what is kept: sketches, or the bytes of files, into which the change is put that comes next. */
function spoil(page: Page, what: 'sketch' | { changedAt: number }): Promise<void> {
  return page.evaluate(async (what) => {
    const of = <Answer>(request: IDBRequest<Answer>) =>
      new Promise<Answer>((resolve) => (request.onsuccess = () => resolve(request.result)));
    const database = await of(indexedDB.open('syncline-sketches'));
    // A transaction ends where something else is waited for.
    const store = () => database.transaction('sketches', 'readwrite').objectStore('sketches');
    for (const key of await of(store().getAllKeys())) {
      const sketch = (await of(store().get(key))) as { bytes: Uint8Array; old: Blob };
      if (what === 'sketch') {
        sketch.bytes.fill(7, 8, 4000);
      } else {
        const bytes = new Uint8Array(await sketch.old.arrayBuffer());
        bytes.set(new TextEncoder().encode('changed'), what.changedAt);
        sketch.old = new Blob([bytes]);
      }
      await of(store().put(sketch, key));
    }
    database.close();
  }, what);
}

test('a file that was sent from here before goes as what has changed in one request, also after a reload, and signing out forgets it', async ({
  page,
}) => {
  const bytes = randomBytes(3_000_000);
  await ada.putFile(workspace, 'diary.bin', new Blob([new Uint8Array(bytes)]));
  await openBox(page);
  const change = async (at: number) => {
    bytes.write('changed', at);
    await picker(page).setInputFiles([file('diary.bin', bytes)]);
    await page.getByRole('button', { name: 'Replace' }).click();
    await expect.poll(async () => sum(await content('diary.bin'))).toBe(sum(bytes));
    const { etag } = (await ada.node(workspace, 'diary.bin')) ?? {};
    await expect.poll(() => sketches(page)).toEqual([[`${workspace} ${etag}`, 0]]);
  };
  const seen = watched(page, 'diary.bin');
  const deltas = () => seen.whats().filter((what) => / (delta|chunks|files)$/.test(what));
  await change(1_000_000);
  expect(deltas()).toContain('GET chunks');
  await change(2_000_000);
  expect(await seen.sum()).toBeLessThan(1000);
  expect(deltas()).toEqual(['POST delta']);
  await page.reload();
  await expect(page.getByRole('grid')).toBeVisible();
  await change(500_000);
  expect(deltas()).toEqual(['POST delta']);
  // What is damaged is found out: the list of the server counts.
  await spoil(page, 'sketch');
  await change(700_000);
  expect(deltas()).toContain('GET chunks');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByLabel('Password')).toBeVisible();
  await expect.poll(() => sketches(page)).toEqual([]);
});

test('who stays signed in sends of a short file only the bytes that have changed, and damage of what was kept costs no more than a request', async ({
  page,
}) => {
  const bytes = randomBytes(3_000_000);
  await ada.putFile(workspace, 'ledger.bin', new Blob([new Uint8Array(bytes)]));
  await openBox(page, { stays: true });
  const seen = watched(page, 'ledger.bin');
  const change = async (...places: number[]) => {
    seen.whats();
    for (const at of places) bytes.write('changed', at);
    await picker(page).setInputFiles([file('ledger.bin', bytes)]);
    await page.getByRole('button', { name: 'Replace' }).click();
    await expect.poll(async () => sum(await content('ledger.bin'))).toBe(sum(bytes));
    const { etag } = (await ada.node(workspace, 'ledger.bin')) ?? {};
    await expect.poll(() => sketches(page)).toEqual([[`${workspace} ${etag}`, bytes.length]]);
  };
  await change(1_000_000);
  // Twenty places of seven bytes in one chunk: by the sketch alone it would be more than 5,000 bytes.
  await change(...Array.from({ length: 20 }, (_, place) => 2_000_000 + place * 300));
  const sent = await seen.sum();
  console.log(`20 places in a file of ${bytes.length} B: ${sent} B up`);
  expect(sent).toBeLessThan(800);
  // A chunk comes out wrong, which the server sees: it is sent whole.
  await spoil(page, { changedAt: 2_500_000 });
  await change(2_500_000);
  const deltas = seen.whats().filter((what) => / (delta|chunks|files)$/.test(what));
  expect(deltas).toEqual(['POST delta', 'POST delta']);
  // The session ends elsewhere: in another tab, as where the server ends it.
  const other = await page.context().newPage();
  await other.goto(server.url);
  await other.evaluate(() => localStorage.removeItem('syncline.session'));
  await expect(page.getByLabel('Password')).toBeVisible();
  await expect.poll(() => sketches(page)).toEqual([]);
});

test('of a large file of which nothing is known the chunk list is learnt by what differs, and fetched only where that is much', async ({
  page,
}) => {
  // Chunks of 16 KiB: a list of 43 KB.
  const bytes = randomBytes(20_000_000).map((byte) => byte & 0xf);
  await openBox(page);
  const ways: string[][] = [];
  for (const places of [1, 1000]) {
    // Another device has put it there.
    const name = `archive-${places}.bin`;
    await ada.putFile(workspace, name, new Blob([bytes]));
    const edited = Buffer.from(bytes);
    for (let place = 0; place < places; place++) edited.write('changed', 7000 + place * 19_000);
    await expect(row(page, name)).toBeVisible();
    const seen = watched(page, name);
    await picker(page).setInputFiles([file(name, edited)]);
    await page.getByRole('button', { name: 'Replace' }).click();
    await expect.poll(async () => sum(await content(name))).toBe(sum(edited));
    ways.push(seen.whats().filter((what) => / (delta|chunks)$/.test(what)));
  }
  // Symbols, sums, and the delta; or so many symbols that the list is shorter.
  expect(ways[0]).toEqual(['POST delta', 'POST delta', 'POST delta']);
  expect(ways[1]?.filter((what) => what === 'GET chunks')).toHaveLength(1);
});

test('where the core cannot be loaded a changed file is sent whole, and so is one of which everything has changed', async ({
  page,
}) => {
  const old = randomBytes(5_000_000);
  const more = Buffer.concat([old, Buffer.from('more')]);
  const other = randomBytes(5_000_000);
  await openBox(page);
  // Whoever signs in needs it, and has it until the page is loaded anew.
  await page.route('**/*.wasm', (route) => route.abort());
  await page.reload();
  await expect(page.getByRole('grid')).toBeVisible();
  for (const [name, changed] of [
    ['blocked.bin', more],
    ['other.bin', other],
  ] as const) {
    await ada.putFile(workspace, name, new Blob([new Uint8Array(old)]));
    await picker(page).setInputFiles([file(name, changed)]);
    await page.getByRole('button', { name: 'Replace' }).click();
    await expect(tray(page).getByText('4.77 MiB · Uploaded')).toBeVisible();
    expect(sum(await content(name))).toBe(sum(changed));
    await page.getByRole('button', { name: 'Clear finished' }).click();
    await page.unroute('**/*.wasm');
  }
});
