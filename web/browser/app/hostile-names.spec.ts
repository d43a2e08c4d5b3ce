// Names that would run a script in the views that come with what they show: conflicts, activity, search, comparisons, storage, encrypted
// workspaces, pairing and invitations. Names of accounts cannot be such, so there a server lies.

import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectSaid, expectText, MARK, NAME } from '../hostile.ts';
import { another, ask, byDevice, digitsOn, enter } from '../pairing.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { complaintsOf, expect, test } from '../test.ts';

const SEALED = `sealed ${MARK}`;
const AT = encodeURIComponent(NAME);

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  const inside = { [`${MARK}/${NAME}`]: 'inside', [NAME]: 'first' };
  server.addWorkspace('ada', MARK, inside);
  server.addWorkspace('ada', SEALED, { ...inside, [`gone ${NAME}`]: 'gone' }, ['--sealed']);
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === MARK)?.id ?? '';
  server.signInDevice('ada', 'ada', MARK);
  await nameDevices();
  server.write('ada', SEALED, NAME, MARK);
});

test.afterAll(() => server.end());

/** Gives all devices the name: of those that are there by then. */
async function nameDevices(): Promise<void> {
  for (const { id } of await ada.call('GET /devices')) {
    await ada.call('PATCH /devices/{device}', { params: { device: id }, body: { name: MARK } });
  }
}

const dialog = (page: Page) => page.getByRole('dialog');
const pane = (page: Page) => page.getByRole('complementary');

async function enterApp(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: MARK }).first()).toBeVisible();
}

async function unlock(page: Page): Promise<void> {
  await enterApp(page);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, NAME).first()).toBeVisible();
}

/** Looks for the name in whatever workspace is open, and for one that is nowhere. */
async function search(page: Page, title: string): Promise<void> {
  const status = dialog(page).getByRole('status').first();
  await page.keyboard.press('Control+k');
  await expectSaid(dialog(page), `Search in ${title}`, 'search');
  await page.keyboard.type('onerror');
  const hits = dialog(page).getByRole('option');
  await expect(hits.locator('mark').first()).toHaveText('onerror');
  for (const text of [NAME, title]) {
    await expectSaid(hits.filter({ hasText: text }), text, `search of ${text}`);
  }
  await dialog(page).getByRole('combobox').fill(`nothing ${MARK}`);
  await expectSaid(status, `Nothing in ${title} is called “nothing ${MARK}”.`, 'nothing found');
  await page.keyboard.press('Escape');
}

/** Compares two versions of the file that is chosen, the contents of which are the name, too. */
async function compare(page: Page): Promise<void> {
  await page
    .getByRole('row', { name: NAME })
    .filter({ hasNotText: /new|gone|conflict/ })
    .click();
  await page.keyboard.press('Alt+i');
  await expectSaid(pane(page).getByRole('heading'), NAME, 'versions');
  await expectSaid(pane(page).getByRole('listitem'), `from ${MARK}`, 'who made a version');
  await pane(page).getByRole('button', { name: 'Compare: Version 1' }).click();
  await expect(dialog(page).locator('ins')).toHaveText(`Added: ${MARK}`);
  await expectSaid(dialog(page), NAME, 'a comparison');
  await page.keyboard.press('Escape');
  await pane(page).getByRole('button', { name: 'Close' }).click();
}

test('names are text among conflicts, in the activity, in the search, in a comparison and in the storage', async ({
  page,
}) => {
  await ada.putFile(workspace, AT, new Blob([MARK]));
  server.write('ada', MARK, NAME, 'of the device');
  const folder = encodeURIComponent(MARK);
  await ada.move(workspace, `${folder}/${AT}`, `${folder}/new%20${AT}`);
  await enterApp(page);
  await page.goto(`${server.url}/#/c/${workspace}`);
  const card = page.getByRole('listitem').filter({ hasText: 'Kept beside it' });
  await expect(card).toHaveCount(1);
  await expect(page).toHaveTitle(`Conflicts – ${MARK} – Syncline`);
  await expectSaid(card.getByRole('heading', { level: 2 }), NAME, 'a conflict');
  await expectSaid(card, `in “${MARK}”`, 'where a conflict is');
  await expectSaid(card, `by you, on ${MARK}`, 'who made a version');
  await page
    .getByRole('button', { name: /^Preview/ })
    .last()
    .click();
  await expect(page.getByText('of the device', { exact: true })).toBeVisible();
  await expectSaid(dialog(page), MARK, 'a preview of a copy');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Keep both/ }).click();
  const another = page.getByLabel('Keep both, this one as');
  await expect(another).toHaveValue(/onerror/);
  await another.fill(NAME);
  await page.keyboard.press('Enter');
  await expect(card.getByRole('alert')).not.toBeEmpty();
  await expectText(page, 'a name that is taken');
  await another.fill(`both ${NAME}`);
  await page.keyboard.press('Enter');
  const notice = page.getByText(`Both are kept, one as “both ${NAME}”`);
  await expectSaid(notice, MARK, 'a decision');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expectSaid(page.getByText(`“${NAME}” is a conflict again`), MARK, 'a decision taken back');

  await page.goto(`${server.url}/#/a/${workspace}`);
  const lines = page.locator('li.change');
  await expect(page).toHaveTitle(`Activity – ${MARK} – Syncline`);
  await expectSaid(page.getByRole('main'), `You, on ${MARK}`, 'who did it');
  const renamed = lines.filter({ hasText: 'Renamed' }).filter({ hasText: `new ${NAME}` });
  await expectSaid(renamed, `${MARK} · was “${NAME}”`, 'a renaming');
  await renamed.getByRole('button').last().click();
  await expectSaid(pane(page).getByRole('heading'), NAME, 'versions beside the activity');

  await page.goto(`${server.url}/#/w/${workspace}`);
  await expect(row(page, NAME).first()).toBeVisible();
  await search(page, MARK);
  await compare(page);

  await page.goto(`${server.url}/#/u/${workspace}`);
  await expect(page).toHaveTitle(`Storage – ${MARK} – Syncline`);
  await expect(page.getByRole('table', { name: 'Files by kind' })).toHaveCount(1);
  await expectText(page, 'the storage of a workspace');
});

test('names of an encrypted workspace are text in its search, its versions, a comparison, its trash and the storage', async ({
  page,
}) => {
  await unlock(page);
  await search(page, SEALED);
  await compare(page);

  rmSync(join(server.folderOf('ada', SEALED), MARK), { recursive: true });
  rmSync(join(server.folderOf('ada', SEALED), `gone ${NAME}`));
  server.sync('ada', SEALED);
  await expect(row(page, `gone ${NAME}`)).toHaveCount(0);
  await page.keyboard.press('Alt+t');
  const gone = row(page, `gone ${NAME}`);
  await expectSaid(gone, `by ${MARK}`, 'who deleted it');
  await expectSaid(gone, SEALED, 'where it was');
  await page.getByLabel('Show what was in deleted folders').check();
  await expect(page.getByRole('row')).toHaveCount(4);
  await expectText(page, 'the trash with what was in folders');
  await gone.click();
  await page.keyboard.press('Alt+r');
  const notice = page.getByText(`“gone ${NAME}” is back in “${SEALED}”`);
  await expectSaid(notice, MARK, 'what came back');

  // The page has its name as long as it is open.
  await page.goto(`${server.url}/#/storage`);
  await page.getByRole('link', { name: SEALED }).click();
  await expect(page).toHaveTitle(`Storage – ${SEALED} – Syncline`);
  await expectText(page, 'the storage of an encrypted workspace');
});

test('names of an encrypted workspace are text among its conflicts and in its activity', async ({
  page,
}) => {
  await unlock(page);
  await page
    .getByRole('row', { name: NAME })
    .filter({ hasNotText: /new|gone|conflict/ })
    .click();
  await page.keyboard.press('Alt+i');
  await pane(page).getByRole('button', { name: 'Restore: Version 1' }).click();
  await expect(pane(page).getByText('Version 3')).toBeVisible();
  server.write('ada', SEALED, NAME, 'of the device');
  await page.getByRole('link', { name: '1 conflict to decide' }).click();
  const card = page.getByRole('listitem').filter({ hasText: 'Kept beside it' });
  await expectSaid(card.getByRole('heading', { level: 2 }), NAME, 'a conflict');
  await expectSaid(card, `in “${SEALED}”`, 'where a conflict is');
  await expectSaid(card, `by you, on ${MARK}`, 'who made a version');
  await page.getByRole('button', { name: `Keep this one: ${NAME}`, exact: true }).click();
  const kept = page.getByText(`“${NAME}” is kept.`);
  await expectSaid(kept, MARK, 'a decision');

  const root = server.sync('ada', SEALED);
  renameSync(join(root, NAME), join(root, `new ${NAME}`));
  server.sync('ada', SEALED);
  await page.keyboard.press('Alt+ArrowUp');
  await page.keyboard.press('Alt+a');
  const main = page.getByRole('main');
  const lines = page.locator('li.change');
  await expectSaid(main, `You, on ${MARK}`, 'who did it');
  const renamed = lines.filter({ hasText: 'Renamed' }).filter({ hasText: `new ${NAME}` });
  await expectSaid(renamed, `${SEALED} · was “${NAME}”`, 'a renaming');
  await expectSaid(lines.filter({ hasText: 'Deleted' }), 'conflict', 'what was deleted');
});

test('names of devices are text on both sides of a pairing', async ({ page, browser }) => {
  const guest = await another(browser);
  const complaints = complaintsOf(guest);
  await unlock(page);
  await byDevice(guest, server);
  await nameDevices();
  await page.getByRole('button', { name: 'Let a device in' }).click();
  await dialog(page).getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await dialog(page).getByRole('button', { name: 'Show a code' }).click();
  await enter(guest, await dialog(page).getByLabel('Code', { exact: true }).inputValue());
  await expectSaid(guest.getByText('lets this browser in'), `“${MARK}”`, 'who lets in');
  await ask(guest);
  await expectSaid(guest.getByText('Compare the digits on'), `“${MARK}”`, 'who is waited for');
  await expect(digitsOn(page)).toBeVisible();
  await expectSaid(page.getByText('asks to be let in'), `“${MARK}”`, 'who asks');
  await dialog(page).getByRole('button', { name: 'let it in' }).click();
  await expectSaid(page.getByText(/is in\.$/), MARK, 'who is in');
  await expect(row(guest, NAME).first()).toBeVisible();
  await expectText(guest, 'what the guest sees');
  expect(complaints).toEqual([]);
  await guest.context().close();
});

/** Changes what the server answers at an address, as one does that lies. */
async function lie(page: Page, address: string, change: (body: string) => string): Promise<void> {
  await page.route(address, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: change(await response.text()) });
  });
}

test('no account has such a name, and where a server says so it is text: in an invitation, beside a workspace', async ({
  page,
}) => {
  expect(() => server.addUser(MARK)).toThrow();
  expect(() => server.invite('--name', MARK)).toThrow();
  const said = (body: string, key: string) =>
    JSON.stringify({ ...(JSON.parse(body) as object), [key]: MARK });
  const main = page.getByRole('main');
  await lie(page, '**/api/v1/join', (body) => said(body, 'name'));
  await page.goto(server.invite());
  const user = page.getByLabel('User');
  await expect(user).toHaveValue(MARK);
  await expectSaid(main, 'letters from a to z', 'a name that is proposed');
  await user.fill('eve');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Password, once more').fill(PASSWORD);
  const problem = { code: MARK, title: MARK, detail: MARK };
  await page.route('**/join/begin', (route) =>
    route.fulfill({
      status: 400,
      contentType: 'application/problem+json',
      body: JSON.stringify(problem),
    }),
  );
  await page.getByRole('button', { name: 'Create account' }).click();
  await expectSaid(page.getByRole('alert'), MARK, 'what is wrong');
  // A secret that nobody was given, either.
  await page.unroute('**/api/v1/join');
  await page.goto(`${server.url}/#/join/${encodeURIComponent(MARK)}`);
  await expectSaid(page.getByRole('alert'), 'There is no such invitation', 'no invitation');

  await lie(page, '**/login/finish', (body) => said(body, 'account'));
  await enterApp(page);
  await page.goto(server.invite());
  await expectSaid(page.getByText('signed in as'), MARK, 'who is signed in');
  await lie(page, '**/api/v1/workspaces', (body) =>
    body
      .replaceAll('"role":"owner"', '"role":"edit"')
      .replaceAll(/"owner":"ada"/g, `"owner":${JSON.stringify(MARK)}`),
  );
  await page.goto(`${server.url}/#/storage`);
  await expectSaid(main.getByRole('link', { name: MARK }), MARK, 'a workspace in the storage');
  await expectSaid(main.getByText('shared by'), MARK, 'whose it is');
});

test('a name that turns the direction of writing is not read as another one, in the list, behind a link, and in the trash', async ({
  page,
}) => {
  const name = 'holiday\u202egpj.exe';
  const shown = 'holiday\\u{202e}gpj.exe';
  const at = encodeURIComponent(name);
  await ada.putFile(workspace, at, new Blob(['none']));
  const params = { workspace };
  const link = await ada.call('POST /workspaces/{workspace}/links', { params, body: { path: at } });
  await enterApp(page);
  await page.goto(`${server.url}/#/w/${workspace}`);
  await expect(row(page, shown)).toHaveCount(1);
  await page.goto(`${server.url}/#/s/${link.secret}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(shown);
  await ada.delete(workspace, at);
  await page.goto(`${server.url}/#/t/${workspace}`);
  await expect(row(page, shown)).toHaveCount(1);
  await expect(page.getByText('\u202e')).toHaveCount(0);
});
