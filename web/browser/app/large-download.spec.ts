// A large file of an encrypted workspace comes to the disk decrypted, in memory that does not grow with it. `SYNCLINE_DOWNLOAD_MIB` says how
// large: the usual 80 show that it works, and from 1024 on the memory is held to its limit.

import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { chromium, type BrowserContext, type Page } from '@playwright/test';
import { browserMemory, type Growth } from '../memory.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { complaintsOf, expect, test } from '../test.ts';

const MIB = 1024 * 1024;
const SIZE = Number(process.env['SYNCLINE_DOWNLOAD_MIB'] ?? 80);
/** By how much all processes of the browser together may grow. */
const GROWTH_MAX = 256 * MIB;
/** In files below this the garbage that nobody has taken away yet is more than the file, and says nothing. */
const SIZE_TELLING = 1024;
const PATIENCE = 120_000 + SIZE * 1_000;

let server: RealServer;
let path: string;

test.beforeAll(async () => {
  test.setTimeout(PATIENCE);
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Films', { 'letter.txt': 'Dear Bob' }, ['--sealed']);
  const piece = () => randomBytes(MIB);
  path = await server.writeLarge('ada', 'Films', 'film.bin', SIZE, piece);
});

test.afterAll(() => server.end());

const profile = mkdtempSync(join(tmpdir(), 'syncline-profile-'));
test.afterAll(() => rmSync(profile, { recursive: true, force: true }));

/** A browser with a profile on the disk, as people have one: others keep in memory whatever they are to store. */
async function during(deed: (page: Page) => Promise<void>): Promise<void> {
  const { launchOptions, locale } = test.info().project.use;
  const context: BrowserContext = await chromium.launchPersistentContext(profile, {
    ...launchOptions,
    ...(locale === undefined ? {} : { locale }),
  });
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    const complaints = complaintsOf(page);
    await deed(page);
    expect(complaints).toEqual([]);
  } finally {
    await context.close();
  }
}

async function open(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, 'film.bin')).toContainText(/[MG]iB/);
  await row(page, 'film.bin').click();
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function tell(how: string, began: number, { bytes, words }: Growth): void {
  const seconds = (Date.now() - began) / 1000;
  console.log(
    `${SIZE} MiB ${how} in ${seconds.toFixed(1)} s (${((SIZE * MIB) / 1e6 / seconds).toFixed(0)} MB/s); ` +
      `all processes of the browser had at most ${(bytes / MIB).toFixed(0)} MiB more (${words})`,
  );
}

test('a large file goes to where somebody has said, in little memory', () =>
  during(async (page) => {
    test.setTimeout(PATIENCE);
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
    const size = () =>
      page.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        // The page makes it after the click.
        return (await (await root.getFileHandle('film.bin', { create: true })).getFile()).size;
      });
    // It is there as a whole or not at all.
    await expect.poll(size, { timeout: PATIENCE }).toBe(SIZE * MIB);
    const grown = memory.grown();
    tell('written to a file', began, grown);
    if (SIZE >= SIZE_TELLING) expect(grown.bytes).toBeLessThan(GROWTH_MAX);
    const picked = await page.evaluateHandle(async () => {
      const root = await navigator.storage.getDirectory();
      return (await root.getFileHandle('film.bin')).getFile();
    });
    const wanted = page.waitForEvent('download');
    await page.evaluate((file) => {
      const anchor = document.createElement('a');
      anchor.href = URL.createObjectURL(file);
      anchor.download = file.name;
      anchor.click();
    }, picked);
    expect(await hashOf(await (await wanted).path())).toBe(await hashOf(path));
  }));
