// Bad days of an edited file, of which only what has changed is sent: the network goes in the middle of it, the server dies, the answer is lost,
// somebody else was there meanwhile. Each time the right file is there in the end, and every version before it.

import { randomBytes } from 'node:crypto';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { CuttingProxy } from '../cutting.ts';
import { RealServer } from '../server.ts';
import { openWorkspace, row } from '../steps.ts';
import { sum } from '../sum.ts';
import { expect, test } from '../test.ts';

const MIDDLE = 500_000;

/** The request that has the new megabyte in it. */
const DELTA = { of: '/delta/', length: MIDDLE };

let server: RealServer;
let proxy: CuttingProxy;
let ada: SynclineClient;
let workspace: string;
let count = 0;

test.beforeAll(async () => {
  server = await RealServer.start();
  proxy = await new CuttingProxy(server.url).listen();
  server.addUser('ada');
  server.addWorkspace('ada', 'Box', { 'plan.txt': 'old' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(async () => {
  await proxy.end();
  await server.end();
});

const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });
const sums = (...contents: Buffer[]) => contents.map(sum);

/** What the versions of a file hold, the oldest first. */
async function kept(name: string): Promise<string[]> {
  const { versions } = await ada.versions(workspace, name);
  const contents = versions.map(async ({ version }) => {
    const { body } = await ada.file(workspace, name, { version });
    return sum(Buffer.from(await new Response(body).arrayBuffer()));
  });
  return Promise.all(contents);
}

interface Edit {
  name: string;
  old: Buffer;
  edited: Buffer;
  /** Requests that sent a piece of the whole file. */
  pieces: string[];
}

/** Opens the page behind the proxy, with a file of which a megabyte in the middle is new. */
async function begin(page: Page): Promise<Edit> {
  const name = `film-${++count}.bin`;
  const old = randomBytes(6_000_000);
  const edited = Buffer.concat([old.subarray(0, 3_000_000), randomBytes(1e6), old.subarray(3e6)]);
  await ada.putFile(workspace, name, new Blob([new Uint8Array(old)]));
  const pieces: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'PATCH') pieces.push(request.url());
  });
  await openWorkspace(page, proxy, 'ada', 'Box');
  await expect(row(page, name)).toBeVisible();
  return { name, old, edited, pieces };
}

async function choose(page: Page, name: string, buffer: Buffer): Promise<void> {
  const mimeType = 'application/octet-stream';
  const picker = page.locator('main input[type=file]').first();
  await picker.setInputFiles([{ name, mimeType, buffer }]);
}

async function upload(page: Page, { name, edited }: Edit): Promise<void> {
  await choose(page, name, edited);
  await page.getByRole('button', { name: 'Replace' }).click();
}

for (const [what, away, back] of [
  ['the network', () => undefined, () => undefined],
  ['the server', () => server.halt(), () => server.run()],
] as const) {
  test(`what has changed in a file is sent anew where ${what} went in the middle of it, and nothing is lost`, async ({
    page,
  }) => {
    const edit = await begin(page);
    const { cuts } = proxy;
    proxy.cut({ ...DELTA, after: MIDDLE, deed: away });
    await upload(page, edit);
    await expect(tray(page)).toContainText('Trying again');
    expect(proxy.cuts).toBe(cuts + 1);
    await back();
    expect(await kept(edit.name)).toEqual(sums(edit.old));
    proxy.mend();
    await expect(tray(page)).toContainText('1 of 1 file');
    expect(await kept(edit.name)).toEqual(sums(edit.old, edit.edited));
    await expect(tray(page)).toContainText(/of 6\.68 MiB sent/);
    expect(edit.pieces).toEqual([]);
  });
}

test('where the network goes before the answer the new version is found, and is there once', async ({
  page,
}) => {
  const edit = await begin(page);
  const { cuts } = proxy;
  proxy.cut(DELTA);
  await upload(page, edit);
  await expect(tray(page)).toContainText('Trying again');
  expect(proxy.cuts).toBe(cuts + 1);
  proxy.mend();
  await expect(tray(page)).toContainText('1 of 1 file');
  expect(await kept(edit.name)).toEqual(sums(edit.old, edit.edited));
  expect(edit.pieces).toEqual([]);
});

test('where the browser itself asks again after a lost answer, nobody is asked about the new version', async ({
  page,
}) => {
  const edit = await begin(page);
  const { cuts } = proxy;
  proxy.cut({ ...DELTA, deed: () => proxy.mend() });
  await upload(page, edit);
  await expect(tray(page)).toContainText('1 of 1 file');
  expect(proxy.cuts).toBe(cuts + 1);
  expect(await kept(edit.name)).toEqual(sums(edit.old, edit.edited));
  expect(edit.pieces).toEqual([]);
});

for (const [what, size, cut] of [
  ['small', 1_000, { of: '/files/', method: 'PUT', length: 1 }],
  ['large', 5_000_000, { of: '/commit', length: 0 }],
] as const) {
  for (const isTheirs of [false, true]) {
    const told = isTheirs
      ? 'is asked about where somebody else has put another'
      : 'is not asked about';
    test(`a ${what} file that the browser itself has sent again ${told}`, async ({ page }) => {
      const [ours, theirs] = [randomBytes(size), randomBytes(size)];
      const name = `new-${++count}.bin`;
      await openWorkspace(page, proxy, 'ada', 'Box');
      const { cuts } = proxy;
      proxy.cut({
        ...cut,
        deed: async () => {
          // Of the same length and time.
          const modifiedMs = ((await ada.node(workspace, name))?.modified ?? 0) * 1000;
          if (isTheirs)
            await ada.putFile(workspace, name, new Blob([new Uint8Array(theirs)]), { modifiedMs });
          proxy.mend();
        },
      });
      await choose(page, name, ours);
      if (isTheirs) await expect(tray(page)).toContainText('A file of this name is there already.');
      else await expect(tray(page)).toContainText('1 of 1 file');
      expect(proxy.cuts).toBe(cuts + 1);
      expect(await kept(name)).toEqual(isTheirs ? sums(ours, theirs) : sums(ours));
    });
  }
}

test('a file that a device changes while the network is gone is asked about, and every version stays', async ({
  page,
}) => {
  const edit = await begin(page);
  const theirs = randomBytes(6_000_001);
  proxy.cut({ ...DELTA, after: MIDDLE });
  await upload(page, edit);
  await expect(tray(page)).toContainText('Trying again');
  await ada.putFile(workspace, edit.name, new Blob([new Uint8Array(theirs)]));
  proxy.mend();
  await expect(tray(page)).toContainText('A file of this name is there already.');
  expect(await kept(edit.name)).toEqual(sums(edit.old, theirs));
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(tray(page)).toContainText('1 of 1 file');
  expect(await kept(edit.name)).toEqual(sums(edit.old, theirs, edit.edited));
});
