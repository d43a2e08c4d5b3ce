// Every view in light and dark, and at the width of a phone.

import { randomBytes } from 'node:crypto';
import type { Page } from '@playwright/test';
import type { SynclineClient, Usage } from '@syncline/api';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';
import { landscape } from './landscape.ts';
import { shoot } from './shoot.ts';

const NOTES = `# Moving to Lisbon

The flat is free from **1 December**. What is left to do:

1. Call the movers, and ask for *Friday*
2. Hand back the keys
3. Say where the post goes: [the form](https://example.org/post)

> Ada: the cat goes with me, by train.

\`\`\`
kitchen   12 boxes
books     31 boxes
\`\`\`
`;

/** Bytes that mean nothing. */
const filling = (length: number) => new Blob([new Uint8Array(randomBytes(length))]);

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let secret: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob', 'carla']) server.addUser(name);
  server.addWorkspace('ada', 'Home', {
    'moving.md': NOTES,
    'budget 2026.csv': 'month;rent\n1;900\n'.repeat(400),
    'Letters/landlord.txt': 'Dear Mr Silva',
    'Photos/readme.txt': 'from the summer',
    'Recipes/soup.md': '# Soup',
  });
  server.addWorkspace('ada', 'Work', { 'report.txt': 'text' });
  const diary = {
    'Years/2025.md': '# 2025',
    'accounts.kdbx': randomBytes(90_000),
    'harbour.png': new Uint8Array(await landscape(960, 640).arrayBuffer()),
    'letter to the lawyer.txt': 'Dear Ms Costa',
  };
  server.addWorkspace('ada', 'Diary', diary, ['--sealed']);
  server.write('ada', 'Diary', 'letter to the lawyer.txt', 'Dear Ms Costa, thank you');
  server.write('ada', 'Diary', 'letter to the lawyer.txt', 'Dear Ms Costa, thank you for today');
  server.share('ada', 'Home', 'bob:edit');
  server.share('ada', 'Home', 'carla:view');
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Home')?.id ?? '';
  await ada.putFile(workspace, 'harbour.png', landscape(960, 640));
  await ada.putFile(workspace, 'contract.pdf', filling(412_000));
  await ada.putFile(workspace, 'budget%202026.csv', new Blob(['month;rent\n1;950\n'.repeat(420)]));
  await ada.putFile(workspace, 'Photos/harbour.png', landscape(960, 640));
  await ada.putFile(workspace, 'Photos/summer.mp4', filling(2_400_000));
  const params = { workspace };
  const made = await ada.call('POST /workspaces/{workspace}/links', {
    params,
    body: { path: 'Photos', expires_in_seconds: 7 * 86_400, downloads_max: 20 },
  });
  secret = made.secret ?? '';
  await ada.call('POST /workspaces/{workspace}/links', {
    params,
    body: { path: 'contract.pdf', expires_in_seconds: 86_400, password: 'x'.repeat(12) },
  });
  await ada.call('POST /tokens', { body: { name: 'Backup of the studio', scope: 'read' } });
});

test.afterAll(() => server.end());

/** Days as a workspace has them that was used for a month: the server of these pictures is some seconds old. */
function earlier(days: Usage['days']): Usage['days'] {
  const [today] = days;
  if (!today) throw new Error('something was put today');
  const sizes = [310, 0, 25, 1800, 940, 0, 0, 60, 75, 2300, 510, 130, 0, 0, 880, 40, 65, 1210];
  const before = sizes.map((kib, at) => ({
    day: today.day - (sizes.length - at) * 86_400,
    stored_bytes: kib * 1024,
  }));
  return [...before.filter(({ stored_bytes }) => stored_bytes > 0), today];
}

async function openHome(page: Page): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: 'Home' }).click();
  await expect(row(page, 'moving.md')).toBeVisible();
  await page.getByRole('grid').focus();
}

test('sign-in', async ({ page }) => {
  await page.goto(server.url);
  await shoot(page, 'sign-in');
});

test('an invitation', async ({ page }) => {
  await page.goto(server.invite('--name', 'eve', '--quota', '50GiB'));
  await expect(page.getByText('room for 50 GiB')).toBeVisible();
  await page.getByLabel('Password', { exact: true }).fill('correct horse battery staple');
  await shoot(page, 'invitation');
});

test('workspaces and account', async ({ page }) => {
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: 'Home' })).toBeVisible();
  await shoot(page, 'workspaces');
  await page.getByRole('link', { name: 'Account of ada' }).click();
  await expect(page.getByText('Backup of the studio')).toBeVisible();
  await shoot(page, 'account');
});

test('lab', async ({ page }) => {
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: 'Home' })).toBeVisible();
  await page.goto(`${server.url}/#/lab`);
  await page.getByRole('button', { name: 'Run all methods' }).click();
  await expect(page.getByText('Done. The scratch file was deleted.')).toBeVisible();
  await page.getByRole('heading', { name: 'Results' }).evaluate((found) => found.scrollIntoView());
  await shoot(page, 'lab');
});

test('files, versions, sharing', async ({ page }) => {
  await openHome(page);
  await row(page, 'contract.pdf').click();
  await shoot(page, 'files');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('con');
  await expect(page.getByRole('option').first()).toBeVisible();
  await shoot(page, 'search');
  await page.keyboard.press('Escape');
  await row(page, 'budget 2026.csv').click();
  await page.keyboard.press('Alt+i');
  await expect(page.getByText('Version 2')).toBeVisible();
  await shoot(page, 'versions');
  await page.getByRole('button', { name: 'Compare: Version 1' }).click();
  await expect(page.getByRole('dialog').getByRole('status')).toContainText('From');
  await shoot(page, 'compare');
  await page.keyboard.press('Escape');
  await page.getByRole('complementary').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Clear selection' }).click();
  await page.getByRole('button', { name: 'Share' }).click();
  await expect(page.getByRole('dialog').getByText('contract.pdf')).toBeVisible();
  await shoot(page, 'sharing');
  await page.getByRole('button', { name: 'New link' }).click();
  await page.getByRole('button', { name: 'Make one up' }).click();
  await shoot(page, 'new-link');
});

test('an encrypted workspace', async ({ page }) => {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await row(page, 'accounts.kdbx').click();
  await shoot(page, 'sealed');
  await page.getByRole('button', { name: 'What the server can see' }).click();
  await page.getByRole('button', { name: 'Show the fingerprint of the app' }).click();
  await expect(page.getByText(/All \d+ files are/)).toBeVisible();
  await shoot(page, 'server-can-see');
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Let a device in' }).click();
  await page.getByRole('dialog').getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('img', { name: /QR code/ })).toBeVisible();
  await shoot(page, 'let-in');
});

test('versions of a file in an encrypted workspace', async ({ page }) => {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await row(page, 'letter to the lawyer.txt').click();
  await page.keyboard.press('Alt+i');
  await expect(page.getByRole('complementary').getByRole('listitem')).toHaveCount(3);
  await shoot(page, 'sealed-versions');
});

test('what was deleted in an encrypted workspace', async ({ page }) => {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  for (const name of ['letter to the lawyer.txt', 'Years']) {
    await row(page, name).click();
    await page.keyboard.press('Delete');
    await expect(row(page, name)).toHaveCount(0);
  }
  await page.keyboard.press('Alt+t');
  await row(page, 'Years').click();
  await shoot(page, 'sealed-trash');
});

test('a folder in sync', async ({ page }) => {
  // The folder of the browser's own file system, since nobody is there to choose one of the disk.
  await page.addInitScript(() => {
    Object.assign(window, {
      showDirectoryPicker: async () =>
        (await navigator.storage.getDirectory()).getDirectoryHandle('Home', { create: true }),
    });
  });
  await openHome(page);
  await page.getByRole('button', { name: 'Keep in sync' }).click();
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await page.getByRole('button', { name: 'Begin' }).click();
  await expect(page.getByText('In sync, watching')).toBeVisible();
  await shoot(page, 'folder-sync');
});

test('trash', async ({ page }) => {
  for (const path of ['Letters/landlord.txt', 'Recipes']) await ada.delete(workspace, path);
  await openHome(page);
  await page.keyboard.press('Alt+t');
  await expect(row(page, 'Recipes')).toBeVisible();
  await shoot(page, 'trash');
});

test('conflicts', async ({ page }) => {
  const changed = 'month;rent\n1;950\n'.repeat(430);
  await ada.putFile(workspace, 'budget%202026.csv', new Blob([changed]));
  server.write('ada', 'Home', 'budget 2026.csv', 'month;rent\n1;980\n'.repeat(410));
  await ada.putFile(workspace, 'moving.md', new Blob([`${NOTES}\nKeys: done.`]));
  server.write('ada', 'Home', 'moving.md', `${NOTES}\nThe cat has a ticket.`);
  await openHome(page);
  await page.keyboard.press('Alt+k');
  await expect(page.getByText(/by you, on/)).toHaveCount(4);
  await shoot(page, 'conflicts');
});

test('activity', async ({ page }) => {
  await ada.move(workspace, 'contract.pdf', 'Letters/contract.pdf');
  await ada.delete(workspace, 'Photos/readme.txt');
  server.write('ada', 'Home', 'Letters/landlord.txt', 'Dear Mr Silva, the keys are on their way.');
  await openHome(page);
  await page.keyboard.press('Alt+a');
  await expect(page.getByRole('heading', { name: 'Today' })).toBeVisible();
  await shoot(page, 'activity');
});

test('storage', async ({ page }) => {
  // What comes on other days is what devices say whose clocks were there.
  await page.route('**/usage', async (route) => {
    const answer = await route.fetch();
    const usage = (await answer.json()) as Usage;
    await route.fulfill({ json: { ...usage, days: earlier(usage.days) } });
  });
  await openHome(page);
  await page.getByRole('button', { name: 'Storage' }).click();
  await expect(page.locator('main canvas')).toBeVisible();
  await shoot(page, 'storage');
  await page
    .getByRole('heading', { name: 'New data by day' })
    .evaluate((it) => it.scrollIntoView());
  await shoot(page, 'storage-days');
  await page.goto(`${server.url}/#/storage`);
  await expect(page.locator('main canvas')).toHaveCount(2);
  await shoot(page, 'storage-all');
});

test('previews', async ({ page }) => {
  await openHome(page);
  await row(page, 'moving.md').dblclick();
  await expect(page.getByRole('heading', { name: 'Moving to Lisbon' })).toBeVisible();
  await shoot(page, 'preview-text');
  await page.keyboard.press('Escape');
  await row(page, 'harbour.png').dblclick();
  await expect(page.getByRole('img', { name: 'harbour.png' })).toBeVisible();
  await shoot(page, 'preview-picture');
});

test('transfers', async ({ page }) => {
  const film = randomBytes(6_300_000);
  await ada.putFile(workspace, 'walk%20through%20the%20flat.mp4', new Blob([new Uint8Array(film)]));
  film.write('a door is open', 2_000_000);
  await openHome(page);
  const file = (name: string, buffer: Buffer) => ({
    name,
    mimeType: 'application/octet-stream',
    buffer,
  });
  const choose = (files: ReturnType<typeof file>[]) =>
    page.locator('input[type=file]').first().setInputFiles(files);
  await choose([file('walk through the flat.mp4', film)]);
  await page.getByRole('button', { name: 'Replace' }).click();
  await expect(page.getByText(/ of 6\.01 MiB sent/)).toBeVisible();
  await choose([
    file('plan of the flat.dwg', randomBytes(812_000)),
    file('contract.pdf', randomBytes(400_000)),
  ]);
  await expect(page.getByText('A file of this name is there already.')).toBeVisible();
  await expect(row(page, 'plan of the flat.dwg')).toBeVisible();
  await shoot(page, 'transfers');
});

test('behind a link', async ({ page }) => {
  await page.goto(`${server.url}/#/s/${secret}`);
  await expect(row(page, 'harbour.png')).toBeVisible();
  await shoot(page, 'link');
});
