// A server that is set back from a backup while a folder is in sync with a workspace that it can read.

import type { SynclineClient } from '@syncline/api';
import { card, edit, keepInSync, look, makeBox, textOf } from '../picked.ts';
import { RealServer } from '../server.ts';
import { openWorkspace } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  ada = await server.client('ada');
});

test.afterAll(() => server.end());

test('what a server has lost stays in the folder and goes up again, and a number that is given anew is not believed', async ({
  page,
}) => {
  test.slow();
  const { workspace, name } = await makeBox(page, server, ada);
  const there = (path: string) => textOf(ada, workspace, path);
  await openWorkspace(page, server, 'ada', name);
  await keepInSync(page);
  await server.backUp();
  await edit(page, 'plan.txt', 'second');
  await edit(page, 'new.txt', 'new');
  await card(page).getByRole('button', { name: 'Sync now' }).click();
  await expect.poll(() => there('new.txt').catch(() => null), { timeout: 60_000 }).toBe('new');
  await expect.poll(() => there('plan.txt'), { timeout: 60_000 }).toBe('second');
  await expect(card(page)).toContainText('In sync, watching');
  await server.setBack();
  // Under the number of the version that was lost.
  await ada.putFile(workspace, 'plan.txt', new Blob(['other!']));
  await expect(card(page)).toContainText('The server was set back', { timeout: 90_000 });
  await expect.poll(() => there('new.txt').catch(() => null), { timeout: 60_000 }).toBe('new');
  await expect(card(page)).toContainText('In sync, watching');
  const found = await look(page);
  const texts = Object.entries(found).filter(([path]) => !path.startsWith('.syncline'));
  expect(texts.map(([, text]) => text).sort()).toEqual(['Dear Bob', 'new', 'other!', 'second']);
  expect(Object.keys(found).filter((path) => path.startsWith('.syncline-trash'))).toEqual([]);
  expect(found['plan.txt']).toBe('other!');
});
