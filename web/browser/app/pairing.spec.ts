import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import {
  another,
  ask,
  boxesOf,
  byDevice,
  CODE,
  DIGITS,
  digitsOn,
  enter,
  expectUntold,
  requestsOf,
  saved,
} from '../pairing.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import type { Terminal } from '../terminal.ts';
import { expect, test } from '../test.ts';

const LETTER = 'Dear Bob, nobody else reads this.\n';

let server: RealServer;
let ada: SynclineClient;
let diary: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob']) server.addUser(name);
  server.addWorkspace('ada', 'Diary', { 'letter.txt': LETTER }, ['--sealed']);
  ada = await server.client('ada');
  diary = (await ada.workspaces())[0]?.id ?? '';
});

test.afterAll(() => server.end());

const boxes = () => boxesOf(ada, diary);

async function hostOnDevice(): Promise<{ host: Terminal; code: string }> {
  const host = server.atTerminal('ada', ['pair', server.folderOf('ada', 'Diary')]);
  return { host, code: await host.waitFor(CODE) };
}

test('a browser is let in by a device: both show the same digits, and no request tells the code', async ({
  page,
}) => {
  const asked = requestsOf(page);
  await byDevice(page, server);
  await inEveryLook(page, () => expectAccessible(page));
  const { host, code } = await hostOnDevice();
  const slip = `${code.startsWith('7') ? '8' : '7'}${code.slice(1)}`;
  await page.getByLabel('Code of the other device').fill(slip);
  await expect(page.getByRole('alert')).toHaveText(/There is a slip in this code/);
  await enter(page, code.toLowerCase().replaceAll('-', ' '));
  const digits = digitsOn(page);
  await expect(digits).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  expect(await boxes()).toEqual(['offer']);
  await ask(page);
  expect(await host.waitFor(DIGITS)).toBe(await digits.textContent());
  host.type('y\n');
  await expect(row(page, 'letter.txt')).toContainText(`${LETTER.length} B`);
  expect(await host.ended()).toBe(0);
  await expect.poll(boxes).toEqual([]);
  expect(await saved(page, 'letter.txt')).toBe(LETTER);
  await expect(page).toHaveTitle('Diary – Syncline');
  expectUntold(asked, code);
  expect(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).not.toContain(
    code,
  );
  // Its keys end with it: who locks it needs a secret, or a code, again.
  await page.getByRole('button', { name: 'Lock now' }).click();
  await expect(page.getByLabel('Passphrase or recovery key')).toBeVisible();
});

test('a code that nobody waits for opens nothing, and one that is void neither', async ({
  page,
}) => {
  const { host, code } = await hostOnDevice();
  host.interrupt();
  expect(await host.ended()).not.toBe(0);
  await expect.poll(boxes).toEqual([]);
  await byDevice(page, server);
  await enter(page, code);
  await expect(page.getByRole('alert')).toHaveText(/No device waits for this code/);
  await page.getByRole('button', { name: 'Use passphrase or recovery key' }).click();
  await expect(page.getByLabel('Passphrase or recovery key')).toBeVisible();
});

test('digits that differ are refused on the device, and the browser hears of it', async ({
  page,
}) => {
  const { host, code } = await hostOnDevice();
  await byDevice(page, server);
  await enter(page, code);
  await ask(page);
  await host.waitFor(DIGITS);
  host.type('n\n');
  expect(await host.ended()).not.toBe(0);
  await expect(page.getByRole('alert')).toHaveText(/The other device has left/);
  await expect.poll(boxes).toEqual([]);
});

test('who cancels or leaves takes the request back', async ({ page, browser }) => {
  const { host, code } = await hostOnDevice();
  await byDevice(page, server);
  await enter(page, code);
  await ask(page);
  await host.waitFor(DIGITS);
  expect(await boxes()).toEqual(['offer', 'request']);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByLabel('Code of the other device')).toBeVisible();
  await expect.poll(boxes).toEqual(['offer']);
  const other = await another(browser);
  await byDevice(other, server);
  await enter(other, code);
  await ask(other);
  await expect.poll(boxes).toEqual(['offer', 'request']);
  await other.goto('about:blank');
  await expect.poll(boxes).toEqual(['offer']);
  host.type('n\n');
  await host.ended();
  await expect.poll(boxes).toEqual([]);
});

test('of two that have one code the first is let in', async ({ page, browser }) => {
  const { host, code } = await hostOnDevice();
  const other = await another(browser);
  for (const guest of [page, other]) {
    await byDevice(guest, server);
    await enter(guest, code);
    await expect(digitsOn(guest)).toBeVisible();
  }
  await ask(page);
  await host.waitFor(DIGITS);
  await ask(other);
  await expect(other.getByRole('alert')).toHaveText(/Another device has used this code/);
  host.type('y\n');
  await expect(row(page, 'letter.txt')).toBeVisible();
  expect(await host.ended()).toBe(0);
  await other.context().close();
});

test('a box that was damaged or exchanged is refused', async ({ page }) => {
  await byDevice(page, server);
  for (const part of ['offer', 'grant']) {
    const { host, code } = await hostOnDevice();
    await page.route(`**/pairing/*/${part}`, async (route) => {
      const response = await route.fetch();
      const body = await response.body();
      if (response.ok()) body[100] = (body[100] ?? 0) ^ 1;
      await route.fulfill({ response, body });
    });
    await enter(page, code);
    if (part === 'grant') {
      await ask(page);
      await host.waitFor(DIGITS);
      host.type('y\n');
    }
    await expect(page.getByRole('alert')).toHaveText(/not what the other device has put there/);
    await page.unroute(`**/pairing/*/${part}`);
    host.interrupt();
    await host.ended();
    await expect.poll(boxes).toEqual([]);
  }
});

test('it ends when nobody answers for ten minutes', async ({ page }) => {
  await page.clock.install();
  const { host, code } = await hostOnDevice();
  await byDevice(page, server);
  await enter(page, code);
  await ask(page);
  await host.waitFor(DIGITS);
  await page.clock.runFor(9 * 60_000);
  await expect(page.getByText(/Compare the digits on/)).toBeVisible();
  await page.clock.runFor(61_000);
  await expect(page.getByRole('alert')).toHaveText(/Nobody has answered in time/);
  await expect.poll(boxes).toEqual(['offer']);
  host.type('n\n');
  await host.ended();
});

test('who only shares a workspace reads why no other device lets them in', async ({ page }) => {
  server.share('ada', 'Diary', 'bob:edit', ['--fingerprint', server.fingerprint('bob')]);
  await signIn(page, server, 'bob');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByRole('button', { name: 'Open it by another device' }).click();
  await expect(page.getByText('Another device cannot let you in here.')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  // The server keeps boxes for nobody else, either.
  const bob = await server.client('bob');
  const params = { workspace: diary, key: `pairing/${'0'.repeat(32)}/offer` };
  const call = bob.call('GET /workspaces/{workspace}/objects/{key}', { params });
  await expect(call).rejects.toThrow();
});
