// PDF, sound and film in the preview, a second factor that is turned on, a link that was just made, a folder that was dropped again, and a
// server that does not answer, in light and dark, and at the width of a phone.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SynclineClient } from '@syncline/api';
import { filmOf, silence } from '../media.ts';
import { pdfOf } from '../pdf.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { shoot } from './shoot.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Home', { 'moving.md': '# Moving to Lisbon' });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
  await ada.putFile(workspace, 'contract.pdf', pdfOf(['Contract', 'Page two']));
  await ada.putFile(workspace, 'message.wav', silence(12));
});

test.afterAll(() => server.end());

test('a PDF file, a track and a film', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Home');
  await ada.putFile(workspace, 'harbour.webm', await filmOf(page, 960, 540));
  const preview = page.getByRole('dialog');
  await row(page, 'contract.pdf').dblclick();
  await expect(preview.locator('iframe, embed, object, canvas').first()).toBeVisible();
  await page.waitForTimeout(1_500);
  await shoot(page, 'preview-pdf');
  await page.keyboard.press('Escape');
  for (const [name, kind] of [
    ['message.wav', 'audio'],
    ['harbour.webm', 'video'],
  ] as const) {
    await row(page, name).dblclick();
    const shown = preview.locator(kind);
    await expect
      .poll(() => shown.evaluate((found) => (found as HTMLMediaElement).readyState))
      .toBe(4);
    // Until it has played, a film that a browser recorded shows that it is loaded.
    await shown.evaluate(async (found) => {
      const media = found as HTMLMediaElement;
      await media.play();
      await new Promise((resolve) => setTimeout(resolve, 300));
      media.pause();
    });
    await shoot(page, `preview-${kind}`);
    await page.keyboard.press('Escape');
  }
});

test('a second factor', async ({ page }) => {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: 'Account of ada' }).click();
  const factor = page.getByRole('region', { name: 'Second factor' });
  await factor.getByRole('button', { name: 'Turn on' }).click();
  await factor.getByLabel('Your password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(factor.getByLabel('Secret')).toBeVisible();
  await factor.evaluate((found) => found.scrollIntoView());
  await shoot(page, 'second-factor');
});

test('a link that was just made', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Home');
  await row(page, 'contract.pdf').click();
  await page.getByRole('button', { name: 'Share' }).click();
  await page.getByRole('button', { name: 'New link' }).click();
  await page.getByRole('button', { name: 'Create link' }).click();
  await expect(page.getByText('Copy the link now')).toBeVisible();
  await shoot(page, 'made-link');
});

test('a folder that is dropped again', async ({ page }) => {
  await page.addInitScript(() => {
    delete (window as { showDirectoryPicker?: unknown }).showDirectoryPicker;
  });
  await openWorkspace(page, server, 'ada', 'Home');
  await page.getByRole('button', { name: 'Keep in sync' }).click();
  const folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  try {
    const drop = () => page.locator('input[type=file]').setInputFiles(folder);
    const large = randomBytes(3_000_000);
    writeFileSync(join(folder, 'plan of the flat.dwg'), large);
    await drop();
    await expect(page.getByText('1 file sent, 0 files unchanged')).toBeVisible();
    large.write('a wall is gone', 1_000_000);
    writeFileSync(join(folder, 'plan of the flat.dwg'), large);
    await drop();
    await expect(page.getByText(/on the wire for 2\.86 MiB/)).toBeVisible();
    await shoot(page, 'drop-again');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a server that does not answer', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Home');
  await row(page, 'moving.md').click();
  await page.route('**/versions/**', (route) => route.abort());
  await page.keyboard.press('Alt+i');
  await expect(page.getByRole('complementary').getByRole('alert')).toBeVisible();
  await shoot(page, 'not-reached');
});
