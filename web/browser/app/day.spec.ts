// A day with the app in one story, told twice: by mouse, and by keys alone. Accounts are made by whoever runs the server.

import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { keys, mouse, type Hand } from '../hands.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row } from '../steps.ts';
import { sum } from '../sum.ts';
import { complaintsOf, expect, test } from '../test.ts';
import { countSent } from '../wire.ts';

const SENT_MAX = 4096;

let server: RealServer;
let folder: string;

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'syncline-web-'));
  server = await RealServer.start();
});

test.afterAll(async () => {
  await server.end();
  rmSync(folder, { recursive: true });
});

/** One who uses the app: the story asks what is at the server by a program of that person. */
interface Person {
  user: string;
  page: Page;
  hand: Hand;
  device: SynclineClient;
  workspace: string;
}

async function content(person: Person, path: string): Promise<Buffer> {
  const { body } = await person.device.file(person.workspace, path);
  return Buffer.from(await new Response(body).arrayBuffer());
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const tray = (page: Page) => page.getByRole('region', { name: 'Transfers' });

/** Presses what asks for files, and gives them: the window of the system cannot be driven, what it returns can. */
async function give(person: Person, name: string, path: string): Promise<void> {
  const chooser = person.page.waitForEvent('filechooser');
  await person.hand.press(button(person.page, name));
  await (await chooser).setFiles(path);
}

async function clear({ page, hand }: Person): Promise<void> {
  await hand.press(button(page, 'Clear finished'));
  await expect(tray(page)).toHaveCount(0);
}

async function begin(user: string, page: Page, hand: Hand): Promise<Person> {
  server.addUser(user);
  await page.addInitScript(() => {
    Reflect.deleteProperty(window, 'showOpenFilePicker');
    // A folder of the browser's own file system stands for a picked one: its handles are those of any folder.
    const pick = async () =>
      (await navigator.storage.getDirectory()).getDirectoryHandle('picked', { create: true });
    Object.assign(window, { showDirectoryPicker: pick });
  });
  await page.goto(server.url);
  await hand.type(page.getByLabel('User'), user);
  await hand.type(page.getByLabel('Password'), PASSWORD);
  await hand.press(button(page, 'Sign in'));
  await hand.type(page.getByLabel('Name of the workspace'), 'Trips');
  await hand.press(button(page, 'Create workspace'));
  await expect(page.getByRole('heading', { name: '“Trips” is ready' })).toBeVisible();
  const device = await server.client(user);
  return { user, page, hand, device, workspace: (await device.workspaces())[0]?.id ?? '' };
}

async function uploadFolder(person: Person): Promise<{ path: string; film: Buffer }> {
  const { page } = person;
  const path = join(folder, person.user, 'trip');
  const film = randomBytes(9_000_000);
  mkdirSync(join(path, 'day'), { recursive: true });
  writeFileSync(join(path, 'film.bin'), film);
  writeFileSync(join(path, 'notes.txt'), 'notes of the first day');
  writeFileSync(join(path, 'day/menu.txt'), 'soup');
  await give(person, 'Choose a folder', path);
  await expect(tray(page)).toContainText('3 of 3 files');
  expect(sum(await content(person, 'trip/film.bin'))).toBe(sum(film));
  expect((await content(person, 'trip/day/menu.txt')).toString()).toBe('soup');
  await clear(person);
  return { path, film };
}

/** Edits one file and uploads it again: what goes over the wire is what has changed. */
async function uploadAgain(person: Person, path: string, film: Buffer): Promise<Buffer> {
  const { page, hand } = person;
  const edited = Buffer.concat([
    film.subarray(0, 4_000_000),
    randomBytes(600),
    film.subarray(4_000_000),
  ]);
  writeFileSync(join(path, 'film.bin'), edited);
  const wire = countSent(page);
  await hand.open('trip');
  await expect(row(page, 'film.bin')).toBeVisible();
  await give(person, 'Upload files', join(path, 'film.bin'));
  await hand.press(button(page, 'Replace'));
  await expect(tray(page)).toContainText(/[\d.]+ (B|KiB) of 8\.58 MiB sent/);
  const sent = await wire.take();
  console.log(`${person.user}: ${edited.length} B with 600 B inserted: ${sent} B up`);
  expect(sent).toBeGreaterThan(600);
  expect(sent).toBeLessThan(SENT_MAX);
  expect(sum(await content(person, 'trip/film.bin'))).toBe(sum(edited));
  await clear(person);
  return edited;
}

async function restoreVersion(person: Person, film: Buffer): Promise<void> {
  const { page, hand } = person;
  await hand.choose('film.bin');
  await hand.press(button(page, 'Versions'));
  await hand.press(button(page, 'Restore: Version 1'));
  await expect(page.getByText('Version 1 is the current content again')).toBeVisible();
  expect(sum(await content(person, 'trip/film.bin'))).toBe(sum(film));
  await expect(page.getByText('Version 3')).toBeVisible();
  await hand.press(page.getByRole('complementary').getByRole('button', { name: 'Close' }));
}

async function bringBack(person: Person): Promise<void> {
  const { page, hand, device, workspace } = person;
  await hand.choose('notes.txt');
  await hand.press(button(page, 'Delete'));
  await expect(row(page, 'notes.txt')).toHaveCount(0);
  expect(await device.node(workspace, 'trip/notes.txt')).toBeNull();
  await hand.press(button(page, 'Trash'));
  await hand.choose('notes.txt');
  await hand.press(button(page, 'Bring back'));
  await expect(page.getByText('“notes.txt” is back in “trip”')).toBeVisible();
  expect((await content(person, 'trip/notes.txt')).toString()).toBe('notes of the first day');
}

/** Makes a link, and opens it in a browser profile that has never seen the app. */
async function shareLink(
  person: Person,
  browser: Browser,
  handOf: (page: Page) => Hand,
  film: Buffer,
): Promise<void> {
  const { page, hand } = person;
  const dialog = page.getByRole('dialog');
  await hand.choose('film.bin');
  await hand.press(button(page, 'Share'));
  await hand.press(dialog.getByRole('button', { name: 'New link' }));
  await hand.press(dialog.getByRole('button', { name: 'Create link' }));
  await hand.press(dialog.getByRole('button', { name: 'Copy link' }));
  await expect(dialog.getByText('Copied')).toBeVisible();
  const address = await page.evaluate(() => navigator.clipboard.readText());
  await hand.press(dialog.getByRole('button', { name: 'Done' }));
  await hand.close();
  await expect(dialog).toHaveCount(0);
  const fresh = await browser.newContext();
  const stranger = await fresh.newPage();
  const complaints = complaintsOf(stranger);
  await stranger.goto(address);
  await expect(stranger.getByRole('heading', { name: 'film.bin' })).toBeVisible();
  const download = stranger.waitForEvent('download');
  await handOf(stranger).press(stranger.getByRole('button', { name: 'Download' }));
  expect(sum(readFileSync(await (await download).path()))).toBe(sum(film));
  expect(complaints).toEqual([]);
  await fresh.close();
}

/** A file of the folder that the browser keeps in sync. */
function picked(page: Page, path: string, content?: string): Promise<string | null> {
  return page.evaluate(
    async ([path, content]) => {
      const root = await navigator.storage.getDirectory();
      let folder = await root.getDirectoryHandle('picked');
      const names = path.split('/');
      const last = names.pop() ?? '';
      try {
        for (const name of names) folder = await folder.getDirectoryHandle(name);
        const file = await folder.getFileHandle(last, { create: content !== undefined });
        if (content !== undefined) {
          const writable = await file.createWritable();
          await writable.write(content);
          await writable.close();
        }
        return await (await file.getFile()).text();
      } catch {
        return null;
      }
    },
    [path, content] as const,
  );
}

/** A folder of the browser and one of the disk that the program keeps are equal, both ways. */
async function syncFolder(person: Person): Promise<void> {
  const { page, hand, user } = person;
  const root = server.clone(user, 'Trips');
  await hand.press(page.getByRole('link', { name: 'Trips', exact: true }));
  await expect(row(page, 'trip')).toBeVisible();
  await hand.press(button(page, 'Keep in sync'));
  await hand.press(button(page, 'Choose a folder of this computer'));
  await hand.press(button(page, 'Begin'));
  await expect(page.getByText('In sync, watching')).toBeVisible();
  expect(await picked(page, 'trip/notes.txt')).toBe('notes of the first day');
  writeFileSync(join(root, 'trip/day/from device.txt'), 'of the device');
  rmSync(join(root, 'trip/day/menu.txt'));
  server.sync(user, 'Trips');
  await expect.poll(() => picked(page, 'trip/day/from device.txt')).toBe('of the device');
  await expect.poll(() => picked(page, 'trip/day/menu.txt')).toBeNull();
  await picked(page, 'trip/notes.txt', 'notes, written on in the browser');
  await expect
    .poll(async () => (await content(person, 'trip/notes.txt')).toString())
    .toBe('notes, written on in the browser');
  server.sync(user, 'Trips');
  const here = readFileSync(join(root, 'trip/notes.txt'), 'utf8');
  expect(here).toBe('notes, written on in the browser');
}

for (const [what, user, handOf] of [
  ['by mouse', 'mia', mouse],
  ['by keys alone', 'kim', keys],
] as const) {
  test(`a folder, an edit, a version, the trash, a link and a synced folder: a day ${what}`, async ({
    page,
    browser,
    context,
  }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const person = await begin(user, page, handOf(page));
    const { path, film } = await uploadFolder(person);
    await uploadAgain(person, path, film);
    await restoreVersion(person, film);
    await bringBack(person);
    await person.hand.press(button(page, 'Back to the files'));
    await person.hand.open('trip');
    await shareLink(person, browser, handOf, film);
    await syncFolder(person);
    await person.hand.press(button(page, 'Sign out'));
    await expect(page.getByLabel('Password')).toBeVisible();
  });
}
