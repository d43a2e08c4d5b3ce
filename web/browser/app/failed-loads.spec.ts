// What a view shows where its list does not come: what is wrong, and a button that asks again. Those that have a test of their own are in theirs.

import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let link: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Notes', { 'plan.txt': 'first', 'inner/a.txt': 'inside' });
  const ada = await server.client('ada');
  const workspace = (await ada.workspaces())[0]?.id ?? '';
  await ada.putFile(workspace, 'plan.txt', new Blob(['second']));
  const wanted = { params: { workspace }, body: { path: 'inner' } };
  link = (await ada.call('POST /workspaces/{workspace}/links', wanted)).secret ?? '';
});

test.afterAll(() => server.end());

const fault = (place: Locator) => place.getByRole('alert').filter({ hasText: 'cannot be reached' });

/** Presses the button once it can be pressed: while something is read it cannot, and a key does not wait for that. */
async function pressOnceEnabled(button: Locator): Promise<void> {
  await expect(button).toBeEnabled();
  await button.press('Enter');
}

const again = (place: Locator) => place.getByRole('button', { name: 'Try again' });

interface Failing {
  /** Where it asks. */
  address: string;
  /** Opens the view, and returns where the list is to be. */
  open: (page: Page) => Promise<Locator>;
  /** What is there once the list has come. */
  wanted: RegExp;
  /** How many requests it takes. */
  requests?: number;
}

async function openAccount(page: Page, part: string): Promise<Locator> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: 'Account of ada' }).click();
  return page.getByRole('region', { name: part });
}

async function openShare(page: Page): Promise<Locator> {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'plan.txt').click();
  await page.getByRole('button', { name: 'Share' }).click();
  return page.getByRole('dialog');
}

async function openVersions(page: Page): Promise<Locator> {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'plan.txt').click();
  await page.getByRole('button', { name: 'Versions' }).click();
  return page.getByRole('complementary').filter({ hasText: 'plan.txt' });
}

async function openPreview(page: Page): Promise<Locator> {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'plan.txt').click();
  await page.keyboard.press('Enter');
  return page.getByRole('dialog');
}

async function openComparison(page: Page): Promise<Locator> {
  const versions = await openVersions(page);
  await versions.getByRole('button', { name: 'Compare: Version 1' }).click();
  return page.getByRole('dialog');
}

async function openLink(page: Page): Promise<Locator> {
  await page.goto(`${server.url}/#/s/${link}`);
  return page.getByRole('main');
}

const FAILING: Record<string, Failing> = {
  devices: {
    address: '**/api/v1/devices',
    open: (page) => openAccount(page, 'Devices'),
    wanted: /This browser/,
  },
  tokens: {
    address: '**/api/v1/tokens',
    open: (page) => openAccount(page, 'Tokens of applications'),
    wanted: /No tokens/,
  },
  'the second factor': {
    address: '**/api/v1/account/totp',
    open: (page) => openAccount(page, 'Second factor'),
    wanted: /Turn on/,
  },
  links: { address: '**/links', open: openShare, wanted: /No links yet/ },
  versions: { address: '**/versions/**', open: openVersions, wanted: /Version 1/ },
  'the bytes of a file': { address: '**/files/plan.txt*', open: openPreview, wanted: /second/ },
  'the bytes of two versions': {
    address: '**/files/plan.txt*',
    open: openComparison,
    wanted: /first/,
    requests: 2,
  },
  'the files behind a link': { address: '**/public/**', open: openLink, wanted: /a\.txt/ },
};

for (const [name, { address, open, wanted, requests = 1 }] of Object.entries(FAILING)) {
  test(`where ${name} do not come, it is said, and asked again when somebody wants it`, async ({
    page,
  }) => {
    let asked = 0;
    await page.route(address, (route) => {
      asked++;
      return route.abort();
    });
    const place = await open(page);
    await expect(fault(place)).toBeVisible();
    await expect(place.getByText(wanted)).toHaveCount(0);
    await inEveryLook(page, () => expectAccessible(page));
    // It fails again: what is wrong stays.
    const before = asked;
    await pressOnceEnabled(again(place));
    await expect.poll(() => asked).toBe(before + requests);
    await expect(fault(place)).toBeVisible();
    await page.unroute(address);
    await pressOnceEnabled(again(place));
    await expect(place.getByText(wanted).first()).toBeVisible();
    await expect(fault(place)).toHaveCount(0);
  });
}

test('where the members do not come, it is said, and asked again when somebody wants it', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.route('**/members', (route) => route.abort());
  await page.keyboard.press('Alt+s');
  const dialog = page.getByRole('dialog', { name: 'Share “Notes”' });
  await expect(fault(dialog)).toBeVisible();
  await page.unroute('**/members');
  await pressOnceEnabled(again(dialog).first());
  await expect(dialog.getByText('Nobody else may use this workspace.')).toBeVisible();
  await expect(fault(dialog)).toHaveCount(0);
});

test('where the folders to move to do not come, it is said, and asked again when somebody wants it', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'plan.txt').click();
  let asked = 0;
  await page.route('**/folders', (route) => {
    asked++;
    return route.abort();
  });
  await page.keyboard.press('Alt+m');
  const dialog = page.getByRole('dialog');
  await expect(fault(dialog)).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  const before = asked;
  await pressOnceEnabled(again(dialog));
  await expect.poll(() => asked).toBe(before + 1);
  await expect(fault(dialog)).toBeVisible();
  await page.unroute('**/folders');
  await pressOnceEnabled(again(dialog));
  await expect(dialog.getByRole('button', { name: 'inner' })).toBeVisible();
  await expect(fault(dialog)).toHaveCount(0);
  await expect(dialog.getByRole('group')).toBeFocused();
});
