// Bad days of a folder that is kept in sync: leave is taken back, what the browser keeps is wiped, its storage is full.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { card, edit, keepInSync, look, makeBox, textOf } from '../picked.ts';
import { RealServer } from '../server.ts';
import { openWorkspace, signIn, storageOf, wipeStorage } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
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
const versions = async (path: string) => (await ada.versions(workspace, path)).versions.length;

/** Takes back the leave that the browser has for the folder. */
const takeBack = (page: Page) =>
  page.evaluate(() => void Object.assign(window, { isAllowed: false }));

/** Gives leave for the folder that can be taken back, at once or with the next piece that is written. */
const giveLeave = (page: Page) =>
  page.addInitScript(() => {
    const now = window as { isAllowed?: boolean; endsWithWrite?: boolean };
    now.isAllowed = true;
    const check = () => {
      if (!now.isAllowed) throw new DOMException('no leave', 'NotAllowedError');
    };
    const guard = (kind: { prototype: object }, names: string[]) => {
      const methods = kind.prototype as Record<string, (...how: unknown[]) => Promise<unknown>>;
      for (const name of names) {
        const method = methods[name];
        methods[name] = async function (...how) {
          check();
          return method?.apply(this, how);
        };
      }
    };
    const { createWritable } = FileSystemFileHandle.prototype;
    Object.assign(FileSystemFileHandle.prototype, {
      async createWritable(this: FileSystemFileHandle) {
        const writable = await createWritable.call(this);
        if (!now.endsWithWrite) return writable;
        return new WritableStream({
          async write() {
            now.isAllowed = false;
            await writable.abort();
            check();
          },
        });
      },
    });
    guard(FileSystemDirectoryHandle, ['getFileHandle', 'getDirectoryHandle', 'removeEntry']);
    guard(FileSystemFileHandle, ['getFile', 'createWritable', 'move']);
    const { entries } = FileSystemDirectoryHandle.prototype;
    Object.assign(FileSystemDirectoryHandle.prototype, {
      async *entries(this: FileSystemDirectoryHandle) {
        check();
        for await (const one of entries.call(this)) {
          check();
          yield one;
        }
      },
    });
    Object.assign(FileSystemHandle.prototype, {
      queryPermission: async () => (now.isAllowed ? 'granted' : 'prompt'),
      requestPermission: async () => {
        [now.isAllowed, now.endsWithWrite] = [true, false];
        return 'granted';
      },
    });
  });

test('where leave is taken back while a file comes down, the one that was there stays, and the new one comes when it is given again', async ({
  page,
}) => {
  await giveLeave(page);
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
  await page.evaluate(() => void Object.assign(window, { endsWithWrite: true }));
  await put('plan.txt', 'second, meanwhile');
  await expect(card(page)).toContainText('Needs your permission');
  expect(await there('plan.txt')).toBe('second, meanwhile');
  await card(page).getByRole('button', { name: 'Allow' }).press('Enter');
  await expect(card(page)).toContainText('In sync, watching');
  await expect
    .poll(async () => {
      const here = await look(page);
      return Object.keys(here)
        .filter((path) => !path.startsWith('.syncline-trash'))
        .sort();
    })
    .toEqual(['Letters/to bob.md', 'plan.txt']);
  await expect.poll(async () => (await look(page))['plan.txt']).toBe('second, meanwhile');
  // Nothing of it went back up.
  expect([await versions('plan.txt'), await versions('Letters/to%20bob.md')]).toEqual([2, 1]);
});

test('where leave is taken back nothing is deleted, it is said, and goes on when it is given again', async ({
  page,
}) => {
  await giveLeave(page);
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
  await takeBack(page);
  await put('plan.txt', 'second, meanwhile');
  await expect(card(page)).toContainText('Needs your permission');
  await expectAccessible(page);
  expect(await there('plan.txt')).toBe('second, meanwhile');
  expect(await there('Letters/to%20bob.md')).toBe('Dear Bob');
  await card(page).getByRole('button', { name: 'Allow' }).press('Enter');
  await expect(card(page)).toContainText('In sync, watching');
  expect(await look(page)).toMatchObject({
    'plan.txt': 'second, meanwhile',
    'Letters/to bob.md': 'Dear Bob',
  });
  await edit(page, 'plan.txt', 'third');
  await expect.poll(() => there('plan.txt')).toBe('third');
});

test('what the browser keeps is wiped under a synced folder: nothing is lost, twice there or sent again', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
  await edit(page, 'new.txt', 'new here');
  await expect.poll(() => there('new.txt')).toBe('new here');
  await wipeStorage(page, server);
  // The page goes on without what it knew.
  await edit(page, 'plan.txt', 'edited here');
  await put('new.txt', 'edited there');
  await expect(card(page)).toContainText(/Paused|Stopped|In sync/);
  // So is who is signed in.
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name })).toBeVisible();
  await page.goto(`${server.url}/#/sync`);
  await expect(page.getByText('No folder is kept in sync')).toBeVisible();
  expect(await look(page)).toMatchObject({ 'Letters/to bob.md': 'Dear Bob' });
  // The same folder is picked anew.
  await page.goto(`${server.url}/#/w/${workspace}`);
  await keepInSync(page);
  const here = await look(page);
  const names = Object.keys(here).filter((path) => !path.startsWith('.syncline-trash'));
  const contents = names.map((path) => here[path]);
  for (const content of ['edited here', 'edited there', 'Dear Bob'])
    expect(contents).toContain(content);
  for (const path of names)
    expect(await there(encodeURIComponent(path).replaceAll('%2F', '/'))).toBe(here[path]);
  // Where nobody knows what both had in common, each version is kept once.
  expect(new Set(contents).size).toBeGreaterThanOrEqual(4);
  expect(await versions('Letters/to%20bob.md')).toBe(1);
});

test('where the storage of the browser is full this is named, the rest goes on, and it comes when there is room', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
  const letKeep = await storageOf(page, server);
  await letKeep(300_000);
  await ada.putFile(workspace, 'large.bin', new Blob([new Uint8Array(3_000_000).fill(7)]));
  await put('small.txt', 'small');
  await expect(card(page)).toContainText('large.bin: The browser has no room left for it.');
  await expect.poll(async () => (await look(page))['small.txt']).toBe('small');
  await expectAccessible(page);
  // Each look tries again, and has a part there for a moment.
  const left = async () =>
    Object.keys(await look(page)).filter((path) => /^\?$|large|part-/.test(path));
  await expect.poll(left).toEqual([]);
  expect((await ada.node(workspace, 'large.bin'))?.size).toBe(3_000_000);
  await letKeep();
  await card(page).getByRole('button', { name: 'Sync now' }).click();
  await expect.poll(async () => 'large.bin' in (await look(page))).toBe(true);
  expect(await versions('large.bin')).toBe(1);
});

test('where the browser cannot note what both sides have, that is named, nothing is lost or twice there, and it goes on when it can', async ({
  page,
}) => {
  test.setTimeout(150_000);
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
  // The folder lies in the storage of the browser, too, and is changed while there is room.
  await card(page).getByRole('button', { name: 'Pause' }).click();
  await edit(page, 'plan.txt', 'second');
  const letKeep = await storageOf(page, server);
  await letKeep(0);
  await card(page).getByRole('button', { name: 'Resume' }).click();
  await expect.poll(() => there('plan.txt')).toBe('second');
  // Chromium looks twice in a minute whether there is still room for a database.
  const text = 'The browser has no room left';
  await expect(card(page)).toContainText(text, { timeout: 80_000 });
  await put('Letters/to%20bob.md', 'Dear Ben');
  await letKeep();
  await card(page).getByRole('button', { name: 'Sync now' }).click();
  await expect(card(page)).toContainText('In sync, watching');
  await edit(page, 'plan.txt', 'third');
  await expect.poll(() => there('plan.txt')).toBe('third');
  await expect.poll(async () => (await look(page))['Letters/to bob.md']).toBe('Dear Ben');
  const here = Object.keys(await look(page)).filter((path) => !path.startsWith('.syncline'));
  expect(here.sort()).toEqual(['Letters/to bob.md', 'plan.txt']);
  expect([await versions('plan.txt'), await versions('Letters/to%20bob.md')]).toEqual([3, 2]);
});
