// What a device and a browser change at the same time: seen, decided, and taken back, with every byte still there.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { keys, mouse, type Hand } from '../hands.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let name: string;
let count = 0;

test.beforeAll(async () => {
  server = await RealServer.start();
  for (const user of ['ada', 'bob']) server.addUser(user);
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

test.beforeEach(async () => {
  name = `Desk${++count}`;
  server.addWorkspace('ada', name, { 'plan.txt': 'first', 'notes.md': 'one' });
  server.share('ada', name, 'bob:view');
  workspace = (await ada.workspaces()).find((found) => found.name === name)?.id ?? '';
});

/** Changes a file here, and on a device that has not heard of it. */
async function quarrel(path: string, here: string, there: string): Promise<void> {
  await ada.putFile(workspace, path, new Blob([here]));
  server.write('ada', name, path, there);
}

async function content(path: string, version?: number): Promise<string> {
  const { body } = await ada.file(workspace, path, { version });
  return new Response(body).text();
}

/** Names and texts of the workspace. */
async function everything(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const nodes of ada.folder(workspace, '')) {
    for (const { name, path } of nodes) found[name] = await content(path);
  }
  return found;
}

const COPY = /^plan \(conflict .+\)\.txt$/;
const card = (page: Page, text: string) => page.getByRole('listitem').filter({ hasText: text });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const badge = (page: Page, text: string) => page.getByRole('link', { name: text, exact: true });

test('a conflict is seen as it happens, and the copy of the device is kept with the mouse; undo brings both back', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', name);
  await expect(row(page, 'plan.txt')).toBeVisible();
  await expect(page.getByRole('link', { name: /to decide/ })).toHaveCount(0);
  await quarrel('plan.txt', 'of the browser', 'of the device');
  await badge(page, '1 conflict to decide').click();
  await expect(page).toHaveTitle(`Conflicts – ${name} – Syncline`);
  const one = card(page, 'plan.txt');
  await expect(one).toContainText('14 B');
  await expect(one).toContainText('13 B');
  await expect(one.getByText(/by you, on test/)).toBeVisible();
  await expect(one.getByText(/by you, on/)).toHaveCount(2);
  await inEveryLook(page, () => expectAccessible(page));

  await one.getByRole('button', { name: /^Preview: plan \(conflict/ }).click();
  await expect(page.getByText('of the device', { exact: true })).toBeVisible();
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByText('of the browser', { exact: true })).toBeVisible();
  await page.keyboard.press('Escape');

  await one.getByRole('button', { name: /^Keep this one: plan \(conflict/ }).click();
  await expect(page.getByText('“plan.txt” is kept.')).toBeVisible();
  await expect(page.getByText('No conflicts')).toBeVisible();
  await expect(page.getByRole('link', { name: /to decide/ })).toHaveCount(0);
  expect(await everything()).toEqual({ 'notes.md': 'one', 'plan.txt': 'of the device' });
  expect(await content('plan.txt', 2)).toBe('of the browser');
  server.sync('ada', name);

  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByText('“plan.txt” is a conflict again')).toBeVisible();
  await expect(card(page, 'plan.txt')).toBeVisible();
  await expect(badge(page, '1 conflict to decide')).toBeVisible();
  expect(await everything()).toEqual({
    'notes.md': 'one',
    'plan.txt': 'of the browser',
    [Object.keys(await everything()).find((one) => COPY.test(one)) ?? '']: 'of the device',
  });
  // The device has heard of all of it, and agrees.
  server.sync('ada', name);
});

/** What the story of two conflicts needs besides a hand; keys do it by shortcuts. */
interface Way {
  hand: Hand;
  toConflicts: () => Promise<void>;
  undo: () => Promise<void>;
  back: () => Promise<void>;
}

const byMouse = (page: Page): Way => ({
  hand: mouse(page),
  toConflicts: () => badge(page, '2 conflicts to decide').click(),
  undo: () => button(page, 'Undo').last().click(),
  back: () => button(page, 'Back to the files').click(),
});

const byKeys = (page: Page): Way => ({
  hand: keys(page),
  toConflicts: async () => {
    await page.keyboard.press('Alt+k');
    await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  },
  undo: () => page.keyboard.press('Control+z'),
  back: () => page.keyboard.press('Alt+ArrowUp'),
});

for (const [what, wayOf] of [
  ['by mouse', byMouse],
  ['by keys alone', byKeys],
] as const) {
  test(`${what}: one is decided for the file, the other for both under a name of its own, and nothing is lost`, async ({
    page,
  }) => {
    const { hand, toConflicts, undo, back } = wayOf(page);
    const keep = (label: RegExp) => page.getByRole('button', { name: label });
    await quarrel('plan.txt', 'plan here', 'plan there');
    await quarrel('notes.md', 'notes here', 'notes there');
    await page.goto(server.url);
    await hand.type(page.getByLabel('User'), 'ada');
    await hand.type(page.getByLabel('Password'), PASSWORD);
    await hand.submit(button(page, 'Sign in'));
    await hand.press(page.getByRole('link', { name }));
    await expect(badge(page, '2 conflicts to decide')).toBeVisible();
    await toConflicts();
    await expect(page.getByRole('listitem').filter({ hasText: 'Kept beside it' })).toHaveCount(2);

    await hand.press(keep(/^Keep this one: plan\.txt$/));
    await expect(page.getByText('“plan.txt” is kept.')).toBeVisible();
    await expect(card(page, 'plan.txt')).toHaveCount(0);
    await expect(page.getByRole('heading', { name: /^notes\.md/ })).toBeFocused();

    await hand.press(keep(/^Keep both: notes/));
    const another = page.getByLabel('Keep both, this one as');
    await expect(another).toBeFocused();
    await hand.retype(another, 'plan.txt');
    await hand.submit(button(page, 'Keep both'));
    await expect(card(page, 'notes.md').getByRole('alert')).not.toBeEmpty();
    await hand.retype(another, 'notes of the device.md');
    await hand.submit(button(page, 'Keep both'));
    await expect(page.getByText('Both are kept, one as “notes of the device.md”')).toBeVisible();
    await expect(page.getByText('No conflicts')).toBeVisible();
    await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
    expect(await everything()).toEqual({
      'notes.md': 'notes here',
      'notes of the device.md': 'notes there',
      'plan.txt': 'plan here',
    });
    const { nodes } = await ada.call('GET /workspaces/{workspace}/deleted', {
      params: { workspace },
    });
    expect(nodes.map((node) => node.name)).toEqual([expect.stringMatching(COPY)]);
    const again = await ada.restore(workspace, nodes[0]?.id ?? '', nodes[0]?.last_version ?? 0);
    expect(await content(again.path)).toBe('plan there');
    await ada.delete(workspace, again.path);

    await undo();
    await expect(page.getByText('“notes.md” is a conflict again')).toBeVisible();
    await undo();
    await expect(page.getByText('“plan.txt” is a conflict again')).toBeVisible();
    await expect(badge(page, '2 conflicts to decide')).toBeVisible();
    const texts = Object.values(await everything()).sort();
    expect(texts).toEqual(['notes here', 'notes there', 'plan here', 'plan there']);
    await back();
    await expect(row(page, 'notes.md').first()).toBeVisible();
  });
}

test('what somebody else decided or changed meanwhile is not decided again, and who may only look sees it', async ({
  page,
}) => {
  await quarrel('plan.txt', 'here', 'there');
  await signIn(page, server, 'bob');
  await page.getByRole('link', { name }).click();
  await badge(page, '1 conflict to decide').click();
  await expect(card(page, 'plan.txt')).toContainText('Kept beside it');
  await expect(page.getByText('View only')).toBeVisible();
  await expect(page.getByRole('button', { name: /^Keep/ })).toHaveCount(0);
  await expect(card(page, 'plan.txt').getByText(/by test/)).toBeVisible();
  await page.getByRole('button', { name: 'Sign out' }).click();

  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name })).toBeVisible();
  // The page hears of nothing, and decides about what it knows.
  await page.route('**/events', (route) => route.abort());
  await page.goto(`${server.url}/#/c/${workspace}`);
  await expect(card(page, 'plan.txt')).toBeVisible();
  await ada.putFile(workspace, 'plan.txt', new Blob(['newer']));
  await page.getByRole('button', { name: /^Keep this one: plan \(conflict/ }).click();
  await expect(card(page, 'plan.txt').getByRole('alert')).not.toBeEmpty();
  expect(Object.values(await everything()).sort()).toEqual(['newer', 'one', 'there']);
  await page.unroute('**/events');
  await page.reload();
  await ada.delete(workspace, 'plan.txt');
  await expect(page.getByText('The file that it was kept beside is deleted.')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  await page.getByRole('button', { name: /^Keep both/ }).click();
  await page.getByRole('button', { name: 'Keep both', exact: true }).click();
  await expect(page.getByText('No conflicts')).toBeVisible();
  await inEveryLook(page, () => expectAccessible(page));
  expect(Object.values(await everything()).sort()).toEqual(['one', 'there']);
});
