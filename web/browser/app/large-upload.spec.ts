// A large file goes from the disk to the server, in the clear and encrypted, and comes to a device as it was, and so does its next version,
// which differs near its end. `SYNCLINE_UPLOAD_MIB` says how large: the usual 20 show that it works, and 4200 that places behind 4 GiB do.

import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from '@playwright/test';
import { RealServer } from '../server.ts';
import { openSealed, openWorkspace } from '../steps.ts';
import { sumOf } from '../sum.ts';
import { expect, test } from '../test.ts';

const MIB = 1024 * 1024;
const SIZE = Number(process.env['SYNCLINE_UPLOAD_MIB'] ?? 20);
const PATIENCE = 120_000 + SIZE * 1_000;
const NAME = 'film.bin';
const KNOWN = 'letter.txt';

const place = mkdtempSync(join(tmpdir(), 'syncline-large-'));
const film = join(place, NAME);

let server: RealServer;

test.beforeAll(async () => {
  test.setTimeout(PATIENCE);
  server = await RealServer.start();
  server.addUser('ada');
  const open = openSync(film, 'w');
  for (let number = 0; number < SIZE; number++) writeSync(open, randomBytes(MIB));
  closeSync(open);
});

test.afterAll(async () => {
  await server.end();
  rmSync(place, { recursive: true, force: true });
});

/** Overwrites some bytes half a MiB before the end. */
function edit(): void {
  const open = openSync(film, 'r+');
  writeSync(open, randomBytes(17), 0, 17, (SIZE - 0.5) * MIB);
  closeSync(open);
}

/** Uploads the file, and its next version over it; `line` is what the page says of a file on its way. */
async function uploadTwice(page: Page, workspace: string, line: Locator): Promise<void> {
  const input = page.locator('input[type=file]').first();
  const onDevice = () => sumOf(join(server.sync('ada', workspace), NAME));
  const began = Date.now();
  await input.setInputFiles(film);
  await expect(line.last()).toContainText(/Uploaded|Done/, { timeout: PATIENCE });
  const seconds = (Date.now() - began) / 1000;
  expect(await onDevice()).toBe(await sumOf(film));
  edit();
  const again = Date.now();
  await input.setInputFiles(film);
  await page.getByRole('button', { name: 'Replace' }).last().click();
  await expect(line.last()).toContainText(/ sent|Done/, { timeout: PATIENCE });
  const secondsAgain = (Date.now() - again) / 1000;
  expect(await onDevice()).toBe(await sumOf(film));
  console.log(
    `${SIZE} MiB went up in ${seconds.toFixed(1)} s, and an edit near the end in ${secondsAgain.toFixed(1)} s`,
  );
}

test('a large file and its next version arrive in a plain workspace as they are', async ({
  page,
}) => {
  test.setTimeout(4 * PATIENCE);
  server.addWorkspace('ada', 'Films', { [KNOWN]: 'Dear Bob' });
  await openWorkspace(page, server, 'ada', 'Films');
  const tray = page.getByRole('region', { name: 'Transfers' });
  await uploadTwice(page, 'Films', tray.locator('.transfer', { hasText: NAME }));
});

test('a large file and its next version arrive in an encrypted workspace as they are', async ({
  page,
}) => {
  test.setTimeout(4 * PATIENCE);
  server.addWorkspace('ada', 'Diary', { [KNOWN]: 'Dear Bob' }, ['--sealed']);
  await openSealed(page, server, 'ada', KNOWN);
  const lines = page.getByRole('region', { name: 'Files on their way' });
  await uploadTwice(page, 'Diary', lines.getByRole('listitem').filter({ hasText: NAME }));
});
