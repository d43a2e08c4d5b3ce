// Who was invited makes an account, by mouse and by keys alone, and what may go wrong at that.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { keys, mouse } from '../hands.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let folder: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  folder = mkdtempSync(join(tmpdir(), 'syncline-join-'));
  mkdirSync(join(folder, 'trip', 'day 1'), { recursive: true });
  writeFileSync(join(folder, 'trip', 'plan.txt'), 'a plan');
  writeFileSync(join(folder, 'trip', 'day 1', 'notes.txt'), 'notes');
});

test.afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.end();
});

const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const create = (page: Page) => button(page, 'Create account');

/** Gathers all that goes over the wire, the bodies as they are. */
function sentBy(page: Page): Buffer[] {
  const sent: Buffer[] = [];
  page.on('request', (request) => {
    const head = `${request.method()} ${request.url()} ${JSON.stringify(request.headers())}`;
    sent.push(Buffer.concat([Buffer.from(head), request.postDataBuffer() ?? Buffer.alloc(0)]));
  });
  return sent;
}

/** The ways in which a password could stand in a request. */
function spellingsOf(password: string): string[] {
  const bytes = Buffer.from(password);
  // In base64 a text looks different by where it begins.
  const base64 = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    return text.slice(Math.ceil((before * 4) / 3), -4);
  });
  return [password, encodeURIComponent(password), bytes.toString('hex'), ...base64];
}

async function fill(page: Page, name: string, password = PASSWORD): Promise<void> {
  await field(page, 'User').fill(name);
  await field(page, 'Password').fill(password);
  await field(page, 'Password, once more').fill(password);
}

for (const [what, user, handOf] of [
  ['by mouse', 'max', mouse],
  ['by keys alone', 'eve', keys],
] as const) {
  test(`who is invited makes an account and uploads a folder, ${what}, and sends no password`, async ({
    page,
  }) => {
    const hand = handOf(page);
    const sent = sentBy(page);
    // The picker of the system cannot be driven; the one of the page can.
    await page.addInitScript(() => Reflect.deleteProperty(window, 'showDirectoryPicker'));
    const address = server.invite('--name', user, '--quota', '5MiB');
    const secret = address.split('/').at(-1) ?? '';
    await page.goto(address);
    await expect(page.getByText('has room for 5 MiB')).toBeVisible();
    await expect(field(page, 'User')).toHaveValue(user);
    await expect(field(page, 'Password')).toBeFocused();
    await hand.type(field(page, 'Password'), 'short');
    await expect(page.getByText('Too short')).toBeVisible();
    await inEveryLook(page, () => expectAccessible(page));
    await hand.retype(field(page, 'Password'), PASSWORD);
    await expect(page.getByText('A good length.')).toBeVisible();
    await hand.type(field(page, 'Password, once more'), PASSWORD);
    await hand.submit(create(page));

    // Into the first steps, where the keyboard is in the name already.
    await expect(page.getByText('No workspaces yet')).toBeVisible();
    expect(new URL(page.url()).hash).toBe('#/');
    await expect(field(page, 'Name of the workspace')).toBeFocused();
    await hand.type(field(page, 'Name of the workspace'), 'Trips');
    await hand.submit(button(page, 'Create workspace'));
    const chooser = page.waitForEvent('filechooser');
    await hand.press(button(page, 'Choose a folder'));
    await (await chooser).setFiles(join(folder, 'trip'));
    await expect(row(page, 'trip')).toBeVisible();
    await expect
      .poll(async () => {
        const person = await server.client(user);
        const [made] = await person.workspaces();
        const node = await person.node(made?.id ?? '', 'trip/day%201/notes.txt').catch(() => null);
        return node?.size;
      })
      .toBe(5);

    // No address has the secret of the invitation, so no log has it.
    expect(sent.filter((one) => one.toString().split(' {')[0]?.includes(secret))).toEqual([]);

    // The account is that of this password, and the address leads nowhere any more.
    await hand.press(button(page, 'Sign out'));
    await hand.type(field(page, 'User'), user);
    await hand.type(field(page, 'Password'), PASSWORD);
    await hand.submit(button(page, 'Sign in'));
    await expect(page.getByRole('link', { name: 'Trips' })).toBeVisible();
    // Neither making the account nor signing in has told the password.
    const wire = Buffer.concat(sent);
    for (const request of ['/join/finish', '/login/finish'])
      expect(wire.includes(request), request).toBe(true);
    for (const spelling of spellingsOf(PASSWORD))
      expect(wire.includes(spelling), spelling).toBe(false);
    await hand.press(button(page, 'Sign out'));
    await expect(field(page, 'Password')).toBeVisible();
    await page.goto(address);
    await expect(page.getByRole('alert')).toContainText('counts once');
    await expectAccessible(page);
  });
}

test('what is wrong with a name or a password is said where it stands, and what was typed stays', async ({
  page,
}) => {
  await page.goto(server.invite());
  await expect(field(page, 'User')).toBeFocused();
  await fill(page, 'a b', 'Password1');
  await expect(page.getByText('letters from a to z')).toBeVisible();
  await expect(page.getByText('Everybody tries this one first')).toBeVisible();
  await create(page).click();
  await expect(field(page, 'User')).toBeFocused();
  await fill(page, 'ada');
  await field(page, 'Password, once more').fill('another one');
  await expect(page.getByText('The two passwords differ.')).toBeVisible();
  await create(page).click();
  await expect(field(page, 'Password, once more')).toBeFocused();
  await page.getByLabel('Show the password').check();
  await expect(field(page, 'Password, once more')).toHaveCount(0);
  await create(page).click();
  await expect(page.getByText('“ada” is in use here')).toBeVisible();
  await expect(field(page, 'User')).toBeFocused();
  await expect(field(page, 'Password')).toHaveValue(PASSWORD);
  await inEveryLook(page, () => expectAccessible(page));
  await field(page, 'User').fill('ada.2');
  await create(page).click();
  await expect(page.getByText('No workspaces yet')).toBeVisible();
});

test('of two people with one address one gets an account, and the other is told', async ({
  browser,
  page,
}) => {
  const address = server.invite();
  const other = await browser.newPage();
  for (const [one, name] of [
    [page, 'first'],
    [other, 'second'],
  ] as const) {
    await one.goto(address);
    await fill(one, name);
  }
  await Promise.all([create(page).click(), create(other).click()]);
  const outcome = async (one: Page) => {
    if (await one.getByText('No workspaces yet').isVisible()) return 'in';
    return (await one.getByText('counts once').isVisible()) ? 'told' : 'waits';
  };
  await expect
    .poll(async () => (await Promise.all([page, other].map(outcome))).sort().join())
    .toBe('in,told');
  await other.close();
});

test('an invitation that was taken back, or never was, makes nothing', async ({ page }) => {
  const address = server.invite();
  server.uninvite();
  await page.goto(address);
  await expect(page.getByRole('alert')).toContainText('was taken back');
  await inEveryLook(page, () => expectAccessible(page));
  await page.goto(`${server.url}/#/join/${'A'.repeat(43)}`);
  await expect(page.getByRole('alert')).toContainText('There is no such invitation');
  await page.getByRole('link', { name: 'Go to the sign-in' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
});

test('where the answer is lost the next attempt finds the account and signs in', async ({
  page,
}) => {
  await page.goto(server.invite());
  await fill(page, 'lost');
  await page.route('**/join/finish', async (route) => {
    await route.fetch();
    await route.abort();
  });
  await page.route('**/login/begin', (route) => route.abort());
  await create(page).click();
  await expect(page.getByRole('alert')).toContainText('Your account may be there already');
  await page.unroute('**/login/begin');
  await create(page).click();
  await expect(page.getByText('No workspaces yet')).toBeVisible();
});

test('who is signed in decides whether to stay so', async ({ page }) => {
  await signIn(page, server, 'ada');
  await expect(page.getByText('No workspaces yet')).toBeVisible();
  await page.goto(server.invite('--name', 'bob'));
  await expect(page.getByText('signed in as ada')).toBeVisible();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Sign out and create an account' }).click();
  await expect(field(page, 'User')).toHaveValue('bob');
});
