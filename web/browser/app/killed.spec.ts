// A browser that is killed in the midst of an upload, into a plain workspace and into an encrypted one, and started again on the same profile.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { kill, killAll, startBrowser } from '../killing.ts';
import { RealServer } from '../server.ts';
import { openSealed, openWorkspace, row } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const MIB = 1024 * 1024;
const PIECE = 4 * MIB;
const DIARY = 'Diary';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
const folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Box', { 'plan.txt': 'old' });
  server.addWorkspace('ada', DIARY, { 'from-device.txt': 'from a device\n' }, ['--sealed']);
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Box')?.id ?? '';
});

test.afterEach(killAll);

test.afterAll(async () => {
  await server.end();
  // Parts of a browser that was killed may write on for a moment.
  rmSync(folder, { recursive: true, maxRetries: 20, retryDelay: 100 });
});

function newProfile(name: string): string {
  const profile = join(folder, name);
  // A test that is tried again begins without what the first try kept.
  rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  mkdirSync(profile);
  return profile;
}

/**
 * Lets so many requests through and holds the next ones. `taken` are those that the server took, as `name` names them.
 */
async function holdAfter(
  page: Page,
  { url, method, left }: { url: string; method: string; left: number },
  name: (url: string, headers: Record<string, string>) => string,
): Promise<{ taken: string[]; isHeld: boolean }> {
  const gate = { taken: [] as string[], isHeld: false };
  let sent = 0;
  await page.route(url, (route) => {
    if (route.request().method() !== method) return route.continue();
    if (sent++ < left) return route.continue();
    gate.isHeld = true;
    return undefined;
  });
  page.on('response', (response) => {
    const request = response.request();
    if (request.method() === method && response.ok())
      gate.taken.push(name(request.url(), request.headers()));
  });
  return gate;
}

const ALL = Number.POSITIVE_INFINITY;

/** How many packs the browser has noted as stored. */
function storedPacks(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const answer = <Answer>(request: IDBRequest<Answer>) =>
      new Promise<Answer>((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error ?? new Error('it is not to be read'));
      });
    const database = await answer(indexedDB.open('syncline-sealed-packs'));
    const all = await answer(database.transaction('packs').objectStore('packs').getAll());
    database.close();
    return (all as { packs: unknown[] }[])[0]?.packs.length ?? 0;
  });
}

test('an upload goes on after the next start by itself, and sends nothing twice', async () => {
  const profile = newProfile('plain');
  const length = 3 * PIECE + 7;
  const pieces = (page: Page, left: number) =>
    holdAfter(
      page,
      { url: '**/uploads/*', method: 'PATCH', left },
      (_, headers) => headers['upload-offset'] ?? '',
    );
  // The picker of the system cannot be driven; a handle of a file of the browser's own stands in for what it returns.
  const givePicked = (page: Page) =>
    page.addInitScript(() => {
      const pick = async () => [
        await (await navigator.storage.getDirectory()).getFileHandle('kept.bin'),
      ];
      Object.defineProperty(window, 'showOpenFilePicker', { value: pick });
    });
  const first = await startBrowser(profile);
  await givePicked(first.page);
  await first.page.goto(server.url);
  await first.page.evaluate(async (length) => {
    const home = await navigator.storage.getDirectory();
    const file = await home.getFileHandle('kept.bin', { create: true });
    const writable = await file.createWritable();
    await writable.write(new Uint8Array(length).map((_, at) => at % 251));
    await writable.close();
  }, length);
  await openWorkspace(first.page, server, 'ada', 'Box');
  const before = await pieces(first.page, 2);
  await first.page.getByRole('button', { name: 'Upload files' }).click();
  await expect.poll(() => before.isHeld).toBe(true);
  await expect.poll(() => before.taken.map(Number)).toEqual([0, PIECE]);
  await kill(first.process);
  expect(await ada.node(workspace, 'kept.bin')).toBeNull();

  const second = await startBrowser(profile);
  await givePicked(second.page);
  const after = await pieces(second.page, ALL);
  // Who was signed in a browser writes down when it has time, and forgets it in its death.
  await openWorkspace(second.page, server, 'ada', 'Box');
  await expect(row(second.page, 'kept.bin')).toBeVisible();
  expect(after.taken.map(Number)).toEqual([2 * PIECE, 3 * PIECE]);
  const expected = Buffer.from(Array.from({ length }, (_, at) => at % 251));
  const { body } = await ada.file(workspace, 'kept.bin');
  expect(sum(Buffer.from(await new Response(body).arrayBuffer()))).toBe(sum(expected));
});

test('an upload into an encrypted workspace is offered after the next start, and sends no pack twice', async () => {
  const profile = newProfile('sealed');
  const [path, bytes] = [join(folder, 'secret.bin'), randomBytes(23 * MIB)];
  writeFileSync(path, bytes);
  const KNOWN = 'from-device.txt';
  const packs = (page: Page, left: number) =>
    holdAfter(page, { url: '**/packs/*', method: 'PUT', left }, (url) => new URL(url).pathname);
  const lines = (page: Page) => page.getByRole('region', { name: 'Files on their way' });
  // Over the wire to such a browser a file would be another one, with a time of its own.
  const choose = async (page: Page) => {
    const session = await page.context().newCDPSession(page);
    const { root } = await session.send('DOM.getDocument');
    const selector = 'input[type=file]';
    const { nodeId } = await session.send('DOM.querySelector', { nodeId: root.nodeId, selector });
    await session.send('DOM.setFileInputFiles', { files: [path], nodeId });
  };
  const onDevice = () => {
    const synced = join(server.sync('ada', DIARY), 'secret.bin');
    return existsSync(synced) ? sum(readFileSync(synced)) : null;
  };
  const first = await startBrowser(profile);
  await openSealed(first.page, server, 'ada', KNOWN);
  const before = await packs(first.page, 3);
  await choose(first.page);
  await expect.poll(() => before.isHeld).toBe(true);
  await expect.poll(() => before.taken.length).toBe(3);
  // The page hears of it a moment later, and notes it.
  await expect.poll(() => storedPacks(first.page)).toBe(3);
  await kill(first.process);
  expect(onDevice()).toBeNull();

  const second = await startBrowser(profile);
  const after = await packs(second.page, ALL);
  await openSealed(second.page, server, 'ada', KNOWN);
  await expect(lines(second.page)).toContainText('1 file was not finished.');
  await expect(lines(second.page)).toContainText('secret.bin');
  await choose(second.page);
  await expect(lines(second.page)).toContainText('Done');
  expect(onDevice()).toBe(sum(bytes));
  expect(after.taken.length).toBeGreaterThan(0);
  // All of it anew would be six.
  expect(after.taken.length).toBeLessThanOrEqual(4);
  expect(after.taken.filter((pack) => before.taken.includes(pack))).toEqual([]);
});
