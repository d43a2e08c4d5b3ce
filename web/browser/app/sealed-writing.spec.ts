import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, openSealed, row, unlock as unlockHere } from '../steps.ts';
import { expect, test } from '../test.ts';
import { looked, watchWire } from '../wire.ts';

const LETTER = 'Dear Bob, nobody else reads this letter.\n';
const DIARY = 'Diary';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let folder = '';

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', DIARY, { 'from-device.txt': 'from a device\n' }, ['--sealed']);
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

const KNOWN = 'from-device.txt';
const unlock = (page: Page) => unlockHere(page, KNOWN);
const open = (page: Page) => openSealed(page, server, 'ada', KNOWN);

async function choose(page: Page, name: string, buffer: Buffer): Promise<void> {
  const mimeType = 'application/octet-stream';
  await page.locator('input[type=file]').first().setInputFiles({ name, mimeType, buffer });
}

const lines = (page: Page) => page.getByRole('region', { name: 'Files on their way' });

const lineOf = (page: Page, name: string) =>
  lines(page).getByRole('listitem').filter({ hasText: name }).last();

async function upload(page: Page, name: string, content: Buffer): Promise<void> {
  await choose(page, name, content);
  await expect(lineOf(page, name)).toContainText('Done', { timeout: 30_000 });
  await expect(row(page, name)).toBeVisible();
}

/** Syncs the device; returns its folder. Where conflicts wait for a decision the program says so by its status. */
function synced(): string {
  try {
    folder = server.sync('ada', DIARY);
  } catch (error) {
    if (!folder) throw error;
  }
  return folder;
}

function onDevice(path: string): Buffer | null {
  const found = join(synced(), path);
  return existsSync(found) ? readFileSync(found) : null;
}

async function headSeq(): Promise<number> {
  return (await ada.workspace(workspace)).head_seq;
}

test('a device reads byte for byte what the browser wrote, and no name or content went over the wire', async ({
  page,
}) => {
  await watchWire(page);
  await open(page);
  const photo = randomBytes(6 * 1024 * 1024);
  await upload(page, 'letter.txt', Buffer.from(LETTER));
  await upload(page, 'photo.bin', photo);
  await upload(page, 'empty.txt', Buffer.alloc(0));
  await page.getByRole('button', { name: 'New folder' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Geheime Pläne');
  await page.keyboard.press('Enter');
  await row(page, 'Geheime Pläne').dblclick();
  // A file goes into the folder that is shown.
  await expect(page.getByRole('heading', { name: 'Geheime Pläne' })).toBeVisible();
  await upload(page, 'inner.txt', Buffer.from('inside\n'));
  await inEveryLook(page, () => expectAccessible(page));
  expect(onDevice('letter.txt')?.toString()).toBe(LETTER);
  expect(onDevice('photo.bin')?.equals(photo)).toBe(true);
  expect(onDevice('empty.txt')).toHaveLength(0);
  expect(onDevice('Geheime Pläne/inner.txt')?.toString()).toBe('inside\n');

  const plain = ['Dear Bob', 'letter', 'photo', 'inner', 'Geheime', DIARY, PASSWORD];
  const [total, found] = await looked(page, [...plain, photo.subarray(1000, 1064)]);
  console.log(`6 MiB and three small files went as ${total} bytes`);
  expect(total).toBeGreaterThan(photo.length);
  expect(total).toBeLessThan(photo.length * 1.05);
  expect(found).toEqual([]);

  server.write('ada', DIARY, 'Geheime Pläne/inner.txt', 'changed on a device\n');
  await expect(row(page, 'inner.txt')).toContainText('20 B');
  await row(page, 'inner.txt').dblclick();
  await expect(page.getByRole('dialog')).toContainText('changed on a device');
});

test('a small change of a large file sends what has changed, and asks before it replaces', async ({
  page,
}) => {
  const large = randomBytes(12 * 1024 * 1024);
  await open(page);
  await upload(page, 'large.bin', large);
  // A page that has just been opened knows nothing of what is in the packs.
  await watchWire(page);
  await page.reload();
  await unlock(page);
  large.write('a few other bytes', 7_000_000);
  const [before] = await looked(page, []);
  await choose(page, 'large.bin', large);
  await expect(lineOf(page, 'large.bin')).toContainText('is there already');
  await inEveryLook(page, () => expectAccessible(page));
  await lines(page).getByRole('button', { name: 'Replace' }).click();
  await expect(lineOf(page, 'large.bin')).toContainText('Done');
  const sent = (await looked(page, []))[0] - before;
  console.log(`17 bytes in 12 MiB of noise went as ${sent} bytes`);
  expect(sent).toBeLessThan(16 * 1024);
  expect(onDevice('large.bin')?.equals(large)).toBe(true);
});

/** How what the browser keeps of files that were sent begins. */
const keptSketches = (page: Page) =>
  page.evaluate(async () => {
    const opening = indexedDB.open('syncline-sketches');
    const database = await new Promise<IDBDatabase>((resolve) => {
      opening.onsuccess = () => resolve(opening.result);
    });
    const reading = database.transaction('sketches').objectStore('sketches').getAll();
    const all = await new Promise<{ bytes: Uint8Array }[]>((resolve) => {
      reading.onsuccess = () => resolve(reading.result as { bytes: Uint8Array }[]);
    });
    database.close();
    return all.map(({ bytes }) => String.fromCharCode(...bytes.subarray(0, 2)));
  });

test('a document that is edited sends what is new in it, each version the place of the one before, and what is kept says nothing', async ({
  page,
}) => {
  // Deflate streams as an office program writes them, all other after each edit.
  const words = randomBytes(300_000).toString('base64').replaceAll('/', '\n');
  const document = (edit: string) =>
    Buffer.concat([
      Buffer.from('%PDF-1.7\n1 0 obj << /Filter /FlateDecode >> stream\n'),
      deflateSync(words.slice(0, 200_000) + edit + words.slice(200_000)),
      Buffer.from('\nendstream endobj\n'),
    ]);
  await watchWire(page);
  await open(page);
  await upload(page, 'report.pdf', document(''));
  // Sealed as a note, of which nobody without the keys reads more.
  await expect.poll(() => keptSketches(page)).toEqual(['N\u0001']);
  const costs: number[] = [];
  for (const edit of ['one', 'another', 'the last']) {
    const [before] = await looked(page, []);
    await choose(page, 'report.pdf', document(edit));
    await lines(page).getByRole('button', { name: 'Replace' }).last().click();
    await expect(lineOf(page, 'report.pdf')).toContainText('Done');
    costs.push((await looked(page, []))[0] - before);
    expect(onDevice('report.pdf')?.equals(document(edit))).toBe(true);
  }
  console.log(`edits of a document of ${document('').length} bytes went as ${costs.join(', ')}`);
  // By another name it is the same content.
  await row(page, 'report.pdf').click();
  await page.keyboard.press('F2');
  await page.getByRole('textbox', { name: 'Name' }).fill('the report.pdf');
  await page.keyboard.press('Enter');
  await expect(row(page, 'the report.pdf')).toBeVisible();
  const [before] = await looked(page, []);
  await choose(page, 'the report.pdf', document('renamed'));
  await lines(page).getByRole('button', { name: 'Replace' }).last().click();
  await expect(lineOf(page, 'the report.pdf')).toContainText('Done');
  costs.push((await looked(page, []))[0] - before);
  // A cleanup of a device knows what the versions are made from.
  server.cleanUp('ada', DIARY);
  await page.reload();
  await unlock(page);
  await expect(row(page, 'the report.pdf')).toBeVisible();
  const saving = page.waitForEvent('download');
  await row(page, 'the report.pdf').click();
  await page.getByRole('button', { name: 'Download' }).click();
  const saved = readFileSync(await (await saving).path());
  expect(saved.equals(document('renamed'))).toBe(true);
  // The first edit stores what the document holds, from which all later ones are made.
  expect(Math.max(...costs.slice(1))).toBeLessThan(16 * 1024);
  await expect.poll(() => keptSketches(page)).toEqual(['N\u0001']);
});

test('what a device changes at the same moment stays, and the browser writes beside it', async ({
  page,
}) => {
  await open(page);
  await upload(page, 'plan.txt', Buffer.from('of the beginning\n'));
  synced();
  let release: (() => void) | undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let isHeld = false;
  await page.route('**/log', async (route) => {
    if (route.request().method() === 'POST') {
      isHeld = true;
      await released;
    }
    await route.continue();
  });
  await choose(page, 'plan.txt', Buffer.from('of the browser\n'));
  await lines(page).getByRole('button', { name: 'Replace' }).click();
  await expect.poll(() => isHeld).toBe(true);
  server.write('ada', DIARY, 'plan.txt', 'of the device\n');
  release?.();
  await expect(lineOf(page, 'plan.txt')).toContainText('lies beside it');
  expect(onDevice('plan.txt')?.toString()).toBe('of the device\n');
  const beside = readdirSync(synced()).filter((name) => /^plan \(.*\)/.test(name));
  expect(beside).toHaveLength(1);
  expect(onDevice(beside[0] ?? '')?.toString()).toBe('of the browser\n');
  await expect(row(page, beside[0] ?? '')).toBeVisible();
});

test('renaming, deleting and taking it back reach the device, by keyboard alone', async ({
  page,
}) => {
  await open(page);
  await upload(page, 'draft.txt', Buffer.from('draft\n'));
  await page.getByRole('grid').focus();
  await page.keyboard.type('draft');
  await page.keyboard.press('F2');
  await page.getByRole('textbox', { name: 'Name' }).fill('final.txt');
  await page.keyboard.press('Enter');
  await expect(row(page, 'final.txt')).toBeVisible();
  expect(onDevice('final.txt')?.toString()).toBe('draft\n');
  expect(onDevice('draft.txt')).toBeNull();
  await page.getByRole('grid').focus();
  await page.keyboard.type('final');
  await page.keyboard.press('Delete');
  await expect(row(page, 'final.txt')).toHaveCount(0);
  expect(onDevice('final.txt')).toBeNull();
  await page.keyboard.press('Control+z');
  await expect(row(page, 'final.txt')).toBeVisible();
  expect(onDevice('final.txt')?.toString()).toBe('draft\n');
});

async function makeFolder(page: Page, name: string): Promise<void> {
  await page.keyboard.press('Alt+n');
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await page.keyboard.press('Enter');
  await expect(row(page, name)).toBeVisible();
  // The row may come first, and keys that are pressed in a dialog are not for the list.
  await expect(page.getByRole('dialog')).toHaveCount(0);
}

test('two files are moved into a folder and back, and the device sees both', async ({ page }) => {
  await open(page);
  await upload(page, 'one.txt', Buffer.from('one\n'));
  await upload(page, 'two.txt', Buffer.from('two\n'));
  await makeFolder(page, 'Archive');
  const before = await headSeq();
  await row(page, 'one.txt').click();
  await row(page, 'two.txt').click({ modifiers: ['ControlOrMeta'] });
  await page.getByRole('button', { name: 'Move' }).click();
  const dialog = page.getByRole('dialog', { name: 'Move 2 items' });
  await expect(dialog.getByRole('button', { name: `Move to “${DIARY}”` })).toBeDisabled();
  await inEveryLook(page, () => expectAccessible(page));
  await dialog.getByRole('button', { name: 'Archive' }).click();
  await dialog.getByRole('button', { name: 'Move to “Archive”' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByText('2 items moved to “Archive”')).toBeVisible();
  await expect(row(page, 'one.txt')).toHaveCount(0);
  expect(await headSeq()).toBe(before + 1);
  expect(onDevice('Archive/one.txt')?.toString()).toBe('one\n');
  expect(onDevice('Archive/two.txt')?.toString()).toBe('two\n');
  expect(onDevice('one.txt')).toBeNull();
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+z');
  await expect(row(page, 'one.txt')).toBeVisible();
  await expect(row(page, 'two.txt')).toBeVisible();
  expect(onDevice('one.txt')?.toString()).toBe('one\n');
  expect(onDevice('two.txt')?.toString()).toBe('two\n');
  expect(readdirSync(join(synced(), 'Archive'))).toEqual([]);
});

test('what would replace something is moved beside it or not, and no folder goes into itself', async ({
  page,
}) => {
  await open(page);
  await makeFolder(page, 'Box');
  await makeFolder(page, 'Shelf');
  await upload(page, 'note.txt', Buffer.from('of the browser\n'));
  synced();
  server.write('ada', DIARY, 'Box/note.txt', 'of the device\n');
  await row(page, 'note.txt').click();
  await page.keyboard.press('Alt+m');
  const file = page.getByRole('dialog', { name: 'Move “note.txt”' });
  await file.getByRole('button', { name: 'Box' }).click();
  await file.getByRole('button', { name: 'Move to “Box”' }).click();
  await expect(file.getByRole('alert')).toContainText('is there already');
  expect(onDevice('note.txt')?.toString()).toBe('of the browser\n');
  await file.getByRole('button', { name: 'Keep both' }).click();
  await expect(row(page, 'note.txt')).toHaveCount(0);
  expect(onDevice('Box/note.txt')?.toString()).toBe('of the device\n');
  expect(onDevice('Box/note (2).txt')?.toString()).toBe('of the browser\n');

  await row(page, 'Box').click();
  await page.keyboard.press('Alt+m');
  const dialog = page.getByRole('dialog', { name: 'Move “Box”' });
  await expect(dialog.getByRole('button', { name: 'Box', exact: true })).toBeDisabled();
  await dialog.getByRole('button', { name: 'Shelf' }).click();
  // While somebody looks, a device takes the shelf into the box.
  renameSync(join(synced(), 'Shelf'), join(folder, 'Box', 'Shelf'));
  synced();
  await dialog.getByRole('button', { name: 'Move to “Shelf”' }).click();
  await expect(dialog.getByRole('alert')).toContainText('cannot go into itself');
  await page.keyboard.press('Escape');
  await expect(row(page, 'Shelf')).toHaveCount(0);
  await expect(row(page, 'Box')).toBeVisible();
  expect(existsSync(join(synced(), 'Box', 'Shelf'))).toBe(true);
});

test('a commit whose answer was lost counts once, and one that the server drops is told', async ({
  page,
}) => {
  await open(page);
  const before = await headSeq();
  let cut = 0;
  await page.route('**/log', async (route) => {
    if (route.request().method() !== 'POST' || cut > 0) return route.continue();
    cut++;
    await route.fetch();
    await route.abort('connectionreset');
  });
  await upload(page, 'once.txt', Buffer.from('once\n'));
  expect([cut, await headSeq()]).toEqual([1, before + 1]);
  await page.unroute('**/log');
  // It says that it has taken the commit.
  await page.route('**/log', (route) =>
    route.request().method() === 'POST'
      ? route.fulfill({ status: 200, body: '' })
      : route.continue(),
  );
  await choose(page, 'dropped.txt', Buffer.from('dropped\n'));
  await expect(lineOf(page, 'dropped.txt')).toContainText('Do not trust this server');
  await page.unroute('**/log');
  await lines(page).getByRole('button', { name: 'Try again' }).click();
  await expect(lineOf(page, 'dropped.txt')).toContainText('Done');
  expect(onDevice('dropped.txt')?.toString()).toBe('dropped\n');
});
