import type { Locator, Page, Route } from '@playwright/test';
import { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { codeOf } from '../totp.ts';

let server: RealServer;
let ada: SynclineClient;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob', 'eve']) server.addUser(name);
  server.addWorkspace('ada', 'Notes', { 'plan.txt': 'first' });
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

async function openAccount(page: Page, user: string): Promise<void> {
  await signIn(page, server, user);
  await page.getByRole('link', { name: `Account of ${user}` }).click();
  await expect(page.getByRole('heading', { name: `Account of ${user}` })).toBeVisible();
}

test('devices are listed with when they were seen and in sync, renamed and signed out', async ({
  page,
}) => {
  const phone = new SynclineClient({ base: server.url });
  await phone.login({ user: 'ada', password: PASSWORD, device_name: 'Old phone' });
  await openAccount(page, 'ada');
  const devices = page.getByRole('region', { name: 'Devices' }).getByRole('listitem');
  await expect(devices.first()).toContainText('This browser · last seen now');
  await expect(devices.filter({ hasText: 'last in sync' })).toHaveCount(1);
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('button', { name: 'Rename: Old phone' }).press('Enter');
  await expect(page.getByLabel('New name of Old phone')).toBeFocused();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('<b>Lost phone</b>');
  await page.keyboard.press('Enter');
  await expect(devices.filter({ hasText: '<b>Lost phone</b>' })).toHaveCount(1);
  await page.getByRole('button', { name: 'Sign out: <b>Lost phone</b>' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('It needs your password to come back.');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Sign out' }).click();
  await expect(devices.filter({ hasText: 'Lost phone' })).toHaveCount(0);
  await expect(phone.whoAmI()).rejects.toMatchObject({ code: 'not_signed_in' });
});

test('the own password is changed, and who else was signed in is so no more', async ({ page }) => {
  const other = await server.client('bob');
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await openAccount(page, 'bob');
  const change = page.getByRole('button', { name: 'Change password' });
  await page.getByLabel('Current password').fill('wrong');
  // What is too short, or mistyped once, would keep its owner out.
  await page.getByLabel('New password').fill('short');
  await page.getByLabel('Password, once more').fill('short');
  await change.click();
  await expect(page.getByLabel('New password')).toBeFocused();
  await page.getByLabel('New password').fill('another long password');
  await page.getByLabel('Password, once more').fill('another lnog password');
  await change.click();
  await expect(page.getByText('The two passwords differ.')).toBeVisible();
  await expect(page.getByLabel('Password, once more')).toBeFocused();
  await expectAccessible(page);
  expect(asked.filter((path) => path.includes('/account/password'))).toEqual([]);
  await page.getByLabel('Password, once more').fill('another long password');
  await change.click();
  await expect(page.getByText('That is not your current password.')).toBeVisible();
  await page.getByLabel('Current password').fill(PASSWORD);
  await page.getByLabel('Show passwords').check();
  await expect(page.getByLabel('New password')).toHaveAttribute('type', 'text');
  await change.click();
  await expect(page.getByText('1 other was signed out')).toBeVisible();
  await expect(other.whoAmI()).rejects.toMatchObject({ code: 'not_signed_in' });
  const again = new SynclineClient({ base: server.url });
  await again.login({ user: 'bob', password: 'another long password', device_name: 'new' });
});

test('a second factor is turned on by a code, and off by a recovery code', async ({ page }) => {
  await openAccount(page, 'eve');
  const factor = page.getByRole('region', { name: 'Second factor' });
  await factor.getByRole('button', { name: 'Turn on' }).press('Enter');
  await expect(factor.getByLabel('Your password')).toBeFocused();
  await page.keyboard.type('wrong');
  await page.keyboard.press('Enter');
  await expect(factor.getByRole('alert')).toContainText('That is not your current password.');
  await factor.getByLabel('Your password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  const secret = await factor.getByLabel('Secret').inputValue();
  await expect(factor.getByRole('link')).toHaveAttribute('href', /^otpauth:\/\/totp\//);
  await inEveryLook(page, () => expectAccessible(page));
  await factor.getByLabel('Code').fill('000000');
  await page.keyboard.press('Enter');
  await expect(factor.getByRole('alert')).toContainText('The code is wrong');
  await factor.getByLabel('Code').fill(codeOf(secret));
  await page.keyboard.press('Enter');
  const codes = (await factor.getByLabel('Recovery codes').inputValue()).split('\n');
  expect(codes.length).toBeGreaterThan(5);
  await inEveryLook(page, () => expectAccessible(page));
  await factor.getByRole('button', { name: 'I have kept them' }).click();
  await expect(factor).toContainText(`${codes.length} recovery codes are left`);
  await factor.getByRole('button', { name: 'Turn off' }).click();
  await factor.getByLabel('Code').fill(codes[0] ?? '');
  await page.keyboard.press('Enter');
  await expect(factor).toContainText('Signing in takes your password alone.');
});

/** Goes so far with a second factor that only the click is left that turns it on. */
async function withCode(page: Page, user: string): Promise<Locator> {
  server.addUser(user);
  await openAccount(page, user);
  const factor = page.getByRole('region', { name: 'Second factor' });
  await factor.getByRole('button', { name: 'Turn on' }).click();
  await factor.getByLabel('Your password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  const secret = await factor.getByLabel('Secret').inputValue();
  await factor.getByLabel('Code').fill(codeOf(secret));
  return factor;
}

test('a second click turns on nothing twice, and leaves the recovery codes where they are', async ({
  page,
}) => {
  const factor = await withCode(page, 'gus');
  const statuses: number[] = [];
  let asked = 0;
  let go = () => {};
  const areBoth = new Promise<void>((done) => (go = done));
  await page.route('**/totp/confirm', async (route) => {
    if (++asked === 2) go();
    await areBoth;
    const answer = await route.fetch();
    statuses.push(answer.status());
    await route.fulfill({ response: answer });
  });
  await factor.getByRole('button', { name: 'Turn on' }).dblclick();
  await expect(factor.getByLabel('Recovery codes')).toBeVisible();
  await expect.poll(() => statuses.length).toBe(2);
  await page.waitForTimeout(300);
  await expect(factor.getByLabel('Recovery codes')).toBeVisible();
  expect(statuses.toSorted()).toEqual([200, 409]);
});

test('a second factor whose answer was lost is said to be on, and that its codes are lost', async ({
  page,
}) => {
  const factor = await withCode(page, 'fay');
  const lose = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  await page.route('**/totp/confirm', lose);
  await page.keyboard.press('Enter');
  await expect(page.getByText('the answer with the recovery codes was lost')).toBeVisible();
  await expect(factor).toContainText('recovery codes are left');
  await expect(factor.getByRole('button', { name: 'Turn off' })).toBeVisible();
});

test('a token of an application is made, shown once, listed and revoked', async ({ page }) => {
  await openAccount(page, 'ada');
  const tokens = page.getByRole('region', { name: 'Tokens of applications' });
  await expect(tokens).toContainText('No tokens yet.');
  await tokens.getByRole('button', { name: 'New token' }).click();
  await tokens.getByLabel('What it is for').fill('backup <script>');
  await tokens.getByLabel('Where').selectOption('Notes');
  await inEveryLook(page, () => expectAccessible(page));
  await tokens.getByRole('button', { name: 'Create token' }).click();
  const token = await tokens.getByLabel('Token', { exact: true }).inputValue();
  const program = new SynclineClient({ base: server.url, token });
  expect((await program.workspaces()).map(({ name }) => name)).toEqual(['Notes']);
  await tokens.getByRole('button', { name: 'Done' }).click();
  await expect(tokens.getByRole('listitem')).toContainText('read · Notes');
  await inEveryLook(page, () => expectAccessible(page));
  await tokens.getByRole('button', { name: 'Revoke: backup <script>' }).click();
  await expect(tokens).toContainText('No tokens yet.');
  await expect(program.workspaces()).rejects.toMatchObject({ code: 'not_signed_in' });
  expect(await ada.call('GET /tokens')).toEqual([]);
});
