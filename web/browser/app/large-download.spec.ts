// A large file of an encrypted workspace comes to the disk decrypted, in memory that does not grow with it. `SYNCLINE_DOWNLOAD_MIB` says how
// large: the usual 80 show that it works, and from 1024 on the memory is held to its limit.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from '@playwright/test';
import { browserMemory, type Growth } from '../memory.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { sumOf } from '../sum.ts';
import { complaintsOf, expect, test } from '../test.ts';
import { UnwatchedBrowser } from '../unwatched.ts';

const MIB = 1024 * 1024;
const SIZE = Number(process.env['SYNCLINE_DOWNLOAD_MIB'] ?? 80);
/** By how much all processes of the browser together may grow. */
const GROWTH_MAX = 256 * MIB;
/** In files below this the garbage that nobody has taken away yet is more than the file, and says nothing. */
const SIZE_TELLING = 1024;
const PATIENCE = 120_000 + SIZE * 1_000;

let server: RealServer;
let hash: string;

test.beforeAll(async () => {
  test.setTimeout(PATIENCE);
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Films', { 'letter.txt': 'Dear Bob' }, ['--sealed']);
  const piece = () => randomBytes(MIB);
  const path = await server.writeLarge('ada', 'Films', 'film.bin', SIZE, piece);
  hash = await sumOf(path);
  // The server has it; whoever tries a very large one is glad of the room.
  rmSync(path);
});

test.afterAll(() => server.end());

const profile = mkdtempSync(join(tmpdir(), 'syncline-profile-'));
test.afterAll(() => rmSync(profile, { recursive: true, force: true }));

/** The largest file that pages have in the profile, with its size. */
function largest(): { path: string; size: number } {
  const root = join(profile, 'Default', 'File System');
  const names = existsSync(root) ? readdirSync(root, { recursive: true, encoding: 'utf8' }) : [];
  const paths = names.map((name) => join(root, name));
  const files = paths.map((path) => ({
    path,
    size: statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  }));
  return files.reduce((one, other) => (other.size > one.size ? other : one), { path: '', size: 0 });
}

async function open(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await choose(page);
}

/** Unlocks the workspace, and selects the file. */
async function choose(page: Page): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'film.bin')).toContainText(/[MG]iB/);
  await row(page, 'film.bin').click();
}

/** How long the files are that pages have gathered. */
function gathered(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const sizes: number[] = [];
    try {
      const root = await navigator.storage.getDirectory();
      const all = await root.getDirectoryHandle('downloads');
      for await (const folder of all.values()) {
        for await (const file of (folder as FileSystemDirectoryHandle).values()) {
          sizes.push((await (file as FileSystemFileHandle).getFile()).size);
        }
      }
    } catch {
      // It was removed meanwhile.
    }
    return sizes;
  });
}

function tell(how: string, began: number, { bytes, words }: Growth): void {
  const seconds = (Date.now() - began) / 1000;
  console.log(
    `${SIZE} MiB ${how} in ${seconds.toFixed(1)} s (${((SIZE * MIB) / 1e6 / seconds).toFixed(0)} MB/s); ` +
      `all processes of the browser had at most ${(bytes / MIB).toFixed(0)} MiB more (${words})`,
  );
}

test('a large file goes to where somebody has said, in little memory', async () => {
  test.setTimeout(PATIENCE);
  const browser = await UnwatchedBrowser.start(
    profile,
    test.info().project.use.launchOptions ?? {},
  );
  try {
    const page = await browser.watch();
    await page.addInitScript(() => {
      // Nobody can pick in a browser without a screen. Where it goes is a file on the disk all the same.
      Object.assign(window, {
        showSaveFilePicker: async () => {
          const root = await navigator.storage.getDirectory();
          return root.getFileHandle('film.bin', { create: true });
        },
      });
    });
    await open(page);
    const memory = await browserMemory(page);
    const began = Date.now();
    await page.getByRole('button', { name: 'Download' }).click();
    await browser.leave();
    await expect.poll(() => largest().size, { timeout: PATIENCE }).toBe(SIZE * MIB);
    const grown = memory.grown();
    tell('written to a file', began, grown);
    if (SIZE >= SIZE_TELLING) expect(grown.bytes).toBeLessThan(GROWTH_MAX);
    // It is there as a whole or not at all.
    const size = async () =>
      (await browser.watch()).evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        return (await (await root.getFileHandle('film.bin')).getFile()).size;
      });
    await expect.poll(size).toBe(SIZE * MIB);
    expect(await sumOf(largest().path)).toBe(hash);
  } finally {
    await browser.end();
  }
});

test('a large file that nobody picked a place for is gathered on the disk, and what is left there goes', async () => {
  test.setTimeout(PATIENCE);
  const options = test.info().project.use.launchOptions ?? {};
  const context = await chromium.launchPersistentContext(profile, options);
  try {
    const [page = await context.newPage()] = context.pages();
    await page.addInitScript(() => Reflect.deleteProperty(window, 'showSaveFilePicker'));
    const complaints = complaintsOf(page);
    await open(page);
    const saving = page.waitForEvent('download', { timeout: PATIENCE });
    await page.getByRole('button', { name: 'Download' }).click();
    const saved = await (await saving).path();
    expect(await sumOf(saved)).toBe(hash);
    expect(await gathered(page)).toEqual([SIZE * MIB]);
    // The next page takes away what the one before has left.
    await page.reload();
    await expect.poll(() => gathered(page)).toEqual([]);
    // Signing out takes away what is there, and what is still coming.
    await choose(page);
    await context.route('**/packs/**', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await route.continue().catch(() => undefined);
    });
    await page.getByRole('button', { name: 'Download' }).click();
    // Until it is whole it is empty, and what has come lies beside it.
    await expect.poll(() => gathered(page)).toContain(0);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await expect.poll(() => gathered(page)).toEqual([]);
    expect(complaints).toEqual([]);
  } finally {
    await context.close();
  }
});
