import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Download, Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
const large = randomBytes(3_000_000);

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob']) server.addUser(name);
  server.addWorkspace('ada', 'Notes', {
    'Letters/2026/x.txt': 'x',
    'Letters/to bob.md': 'Dear Bob',
    'plan.txt': 'first',
  });
  server.share('ada', 'Notes', 'bob:view');
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
  await ada.putFile(workspace, 'Letters/large.bin', new Blob([new Uint8Array(large)]));
});

test.afterAll(() => server.end());

const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });

/** Unpacks what was saved, and returns how to read what was in it. */
async function unpack(download: Download): Promise<(path: string) => Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  const saved = join(folder, 'saved.zip');
  await download.saveAs(saved);
  const script = 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])';
  const run = spawnSync('python3', ['-c', script, saved, folder], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  test.info().annotations.push({ type: 'folder', description: folder });
  return (path) => readFileSync(join(folder, path));
}

test.afterEach(() => {
  for (const { type, description } of test.info().annotations) {
    if (type === 'folder' && description) rmSync(description, { recursive: true });
  }
});

test('a folder that is selected is downloaded as a ZIP file, whose size the tray knows', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'Letters').click();
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as ZIP' }).press('Enter');
  const download = await saving;
  expect(download.suggestedFilename()).toBe('Letters.zip');
  await expect(tray(page)).toContainText(/2\.86 MiB · Downloaded/);
  await inEveryLook(page, () => expectAccessible(page));
  const read = await unpack(download);
  const top = 'Letters';
  expect(read(join(top, '2026/x.txt')).toString()).toBe('x');
  expect(read(join(top, 'to bob.md')).toString()).toBe('Dear Bob');
  expect(read(join(top, 'large.bin')).equals(large)).toBe(true);
});

test('while nobody knows how much it is, the tray says how much has come', async ({ page }) => {
  await openWorkspace(page, server, 'bob', 'Notes');
  // As behind a proxy that packs anew: without the length, and slowly.
  await page.evaluate(() => {
    const plain = window.fetch;
    const state = window as unknown as { goOn: () => void };
    window.fetch = async (input, init) => {
      const answer = await plain(input, init);
      if (!String(input).includes('/archive')) return answer;
      if (init?.method === 'HEAD') return new Response(null);
      const bytes = new Uint8Array(await answer.arrayBuffer());
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(bytes.slice(0, 1_048_576));
          state.goOn = () => {
            controller.enqueue(bytes.slice(1_048_576));
            controller.close();
          };
        },
      });
      return new Response(body);
    };
  });
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as ZIP' }).click();
  await expect(tray(page)).toContainText('1 MiB so far');
  await expect(tray(page)).not.toContainText('%');
  await expect(tray(page).getByRole('progressbar')).not.toHaveAttribute('value');
  await expectAccessible(page);
  await page.evaluate(() => (window as unknown as { goOn: () => void }).goOn());
  const download = await saving;
  expect(download.suggestedFilename()).toBe('ada_Notes.zip');
  await expect(tray(page)).toContainText('2.86 MiB · Downloaded');
});

test('why a folder cannot be downloaded is said in the tray', async ({ page }) => {
  await ada.makeFolder(workspace, 'Gone');
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'Gone').click();
  await page.route('**/archive/Gone', async (route) => {
    if (route.request().method() === 'GET') await ada.delete(workspace, 'Gone');
    await route.continue();
  });
  await page.getByRole('button', { name: 'Download as ZIP' }).click();
  await expect(tray(page)).toContainText('It is not there any more.');
});
