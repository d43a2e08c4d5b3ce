// Names and files that would run a script or lead somewhere else, in every view; and pages of others that would use the app of whoever is signed in.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SynclineClient } from '@syncline/api';
import { expectNothingRun, expectSaid, expectText, MARK, NAME } from '../hostile.ts';
import { Listening } from '../listening.ts';
import { PASSWORD, RealServer } from '../server.ts';
import { row, signIn } from '../steps.ts';
import { expect, test } from '../test.ts';

const SCRIPT = '<script>window.broken = true; document.title = "broken"</script>';
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="window.broken=true">${SCRIPT}</svg>`;
const FILES = { 'page.html': `<!doctype html>${SCRIPT}`, 'drawing.svg': SVG, 'page.xhtml': SVG };

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let link: string;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  const inside = { [NAME]: 'inside', ...FILES };
  const files = Object.fromEntries(
    Object.entries(inside).map(([name, text]) => [`${MARK}/${name}`, text]),
  );
  server.addWorkspace('ada', MARK, { [NAME]: 'first', [`gone ${NAME}`]: 'gone', ...files });
  server.addWorkspace('ada', `sealed ${MARK}`, files, ['--sealed']);
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === MARK)?.id ?? '';
  const at = encodeURIComponent(NAME);
  await ada.putFile(workspace, at, new Blob(['second']));
  await ada.delete(workspace, encodeURIComponent(`gone ${NAME}`));
  const params = { workspace };
  const make = async (path: string) =>
    (await ada.call('POST /workspaces/{workspace}/links', { params, body: { path } })).secret ?? '';
  link = await make(MARK);
  await make(NAME);
  await ada.call('POST /tokens', { body: { name: MARK, scope: 'read' } });
  const [device] = await ada.call('GET /devices');
  await ada.call('PATCH /devices/{device}', {
    params: { device: device?.id ?? '' },
    body: { name: MARK },
  });
});

test.afterAll(() => server.end());

test('a name is text in every view, whatever it is', async ({ page }) => {
  const dialog = page.getByRole('dialog');
  const home = `${server.url}/#/w/${workspace}`;
  const choose = async () => {
    await page.goto(home);
    await row(page, NAME).click();
  };
  await signIn(page, server, 'ada');
  await expectText(page, 'workspaces');
  await page.getByRole('link', { name: MARK }).first().click();
  await expect(row(page, NAME)).toBeVisible();
  await expectText(page, 'files');
  await expect(page).toHaveTitle(new RegExp('^"\'><img'));
  const keys: [string, string][] = [
    ['Alt+i', 'versions'],
    ['F2', 'renaming'],
    ['Alt+m', 'moving'],
    ['Alt+s', 'sharing'],
  ];
  for (const [key, view] of keys) {
    await choose();
    await page.keyboard.press(key);
    await expect(dialog.or(page.getByText('Version 2')).first()).toBeVisible();
    await expectText(page, view);
    await page.keyboard.press('Escape');
  }
  await choose();
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('second')).toBeVisible();
  await expectText(page, 'preview');
  await page.keyboard.press('Escape');
  const picker = page.locator('main input[type=file]').first();
  await picker.setInputFiles([{ name: NAME, mimeType: 'text/plain', buffer: Buffer.from('x') }]);
  await expect(page.getByText('A file of this name is there already.')).toBeVisible();
  await expectText(page, 'transfers');
  await page.getByRole('button', { name: 'Skip' }).click();
  await page.keyboard.press('Alt+n');
  await page.keyboard.type(MARK);
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toContainText('is there already');
  await expectText(page, 'a name that is taken');
  await page.keyboard.press('Escape');
  await choose();
  await page.keyboard.press('Delete');
  await expect(page.getByText(`“${NAME}” deleted`)).toBeVisible();
  await expectText(page, 'notices');
  await page.getByRole('button', { name: 'Undo' }).click();
  await row(page, MARK).first().dblclick();
  await expect(row(page, 'drawing.svg')).toBeVisible();
  await expectText(page, 'a folder');
  for (const [address, text] of [
    [`t/${workspace}`, `gone ${NAME}`],
    ['account', MARK],
    [`f/${workspace}/${encodeURIComponent(MARK)}`, MARK],
    [`s/${link}`, NAME],
  ] as const) {
    await page.goto(`${server.url}/#/${address}`);
    await expect(page.getByText(text).first()).toBeVisible();
    await expectText(page, address);
  }
  await page.goto(`${server.url}/#/lab`);
  await expect(page.getByRole('button', { name: 'Run all methods' })).toBeVisible();
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
});

test('names of a synced folder and of an encrypted workspace are text, too', async ({ page }) => {
  await page.addInitScript((name) => {
    const pick = async () =>
      (await navigator.storage.getDirectory()).getDirectoryHandle(name.replaceAll('/', ''), {
        create: true,
      });
    Object.assign(window, { showDirectoryPicker: pick });
  }, MARK);
  await signIn(page, server, 'ada');
  await expect(page.getByRole('link', { name: MARK }).first()).toBeVisible();
  await page.goto(`${server.url}/#/f/${workspace}/${encodeURIComponent(MARK)}`);
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await page.getByRole('button', { name: 'Begin' }).click();
  await expect(page.getByText('In sync, watching')).toBeVisible();
  await expectText(page, 'a synced folder');
  await page.goto(`${server.url}/#/`);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, MARK)).toBeVisible();
  await expectText(page, 'an encrypted workspace');
  await row(page, MARK).dblclick();
  await row(page, NAME).dblclick();
  await expect(page.getByRole('dialog').getByText('inside')).toBeVisible();
  await expectText(page, 'a preview of it');
});

test('names of a file that was not finished, and of workspaces that the lab may use, are text', async ({
  page,
}) => {
  await signIn(page, server, 'ada');
  await page.goto(`${server.url}/#/lab`);
  const choice = page.getByRole('option', { name: MARK, exact: true });
  await expect(choice).toHaveText(MARK);
  await page.getByRole('combobox').filter({ has: choice }).selectOption(MARK);
  await expectNothingRun(page, 'the lab');

  await page.goto(`${server.url}/#/w/${workspace}`);
  await page.route('**/uploads/*', (route) =>
    route.request().method() === 'PATCH' ? undefined : route.continue(),
  );
  const name = `late ${NAME}`;
  const buffer = Buffer.alloc(5 * 1024 * 1024);
  const picker = page.locator('main input[type=file]').first();
  await picker.setInputFiles({ name, mimeType: 'text/plain', buffer });
  const tray = page.getByRole('region', { name: 'Transfers' });
  await expectSaid(tray, name, 'a file on its way');
  await page.reload();
  await expect(tray).toContainText('1 file was not finished.');
  await expectSaid(tray, name, 'a file that was not finished');
});

test('pages and drawings behind a link are saved and never opened, whoever asks for them', async ({
  page,
  browser,
}) => {
  const stranger = await browser.newPage();
  await stranger.goto(`${server.url}/s/${link}`);
  await expectText(stranger, 'the page of a link without a script');
  for (const name of Object.keys(FILES)) {
    const address = `${server.url}/s/${link}/content/${name}`;
    const download = stranger.waitForEvent('download');
    await stranger.goto(address).catch(() => null);
    expect((await download).suggestedFilename()).toBe(name);
    const answer = await page.request.get(address);
    expect(answer.headers()['x-content-type-options']).toBe('nosniff');
    expect(answer.headers()['content-security-policy']).toContain("default-src 'none'");
  }
  // At the API nobody is anybody without a token, which an address cannot bear.
  const at = `${server.url}/api/v1/workspaces/${workspace}/files/${encodeURIComponent(MARK)}/page.html`;
  expect((await page.goto(at))?.status()).toBe(401);
  expect(await page.title()).not.toBe('broken');
  // Whoever tells a browser the password that WebDAV asks for has the files saved as well, whatever they are called.
  const known = { username: 'ada', password: PASSWORD };
  const drive = await (await browser.newContext({ httpCredentials: known })).newPage();
  const root = `${server.url}/dav/${encodeURIComponent(MARK)}/${encodeURIComponent(MARK)}`;
  for (const name of Object.keys(FILES)) {
    const download = drive.waitForEvent('download');
    await drive.goto(`${root}/${name}`).catch(() => null);
    expect((await download).suggestedFilename()).toBe(name);
  }
  expect(await drive.title()).not.toBe('broken');
  await drive.context().close();
  await stranger.close();
});

/** A page of somebody else, on an address of its own. */
class OtherSite extends Listening {
  constructor(readonly body: string) {
    super();
  }

  protected override answer(_: IncomingMessage, answer: ServerResponse): void {
    answer.writeHead(200, { 'content-type': 'text/html' });
    answer.end(`<!doctype html><title>elsewhere</title>${this.body}`);
  }

  /** Another name of this computer is another site. */
  override get url(): string {
    return super.url.replace('127.0.0.1', 'localhost');
  }
}

test('no page of others shows the app in a frame, nor does anything in the name of who is signed in', async ({
  context,
}) => {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.getByLabel('User').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByLabel('Stay signed in').check();
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('link', { name: MARK }).first()).toBeVisible();
  const api = `${server.url}/api/v1`;
  const frames = [server.url, `${server.url}/#/w/${workspace}`, `${server.url}/s/${link}`];
  const others = new OtherSite(`
    ${frames.map((src) => `<iframe src="${src}"></iframe>`).join('')}
    <form id="make" method="post" action="${api}/workspaces" enctype="text/plain" target="out">
      <input name='{"name":"forged","x":"' value='"}'></form>
    <iframe name="out"></iframe>`);
  await others.listen();
  const before = await ada.workspaces();
  const evil = await context.newPage();
  await evil.goto(others.url);
  for (const frame of evil.frames().slice(1, 4)) {
    await expect.poll(() => frame.url()).toMatch(/^chrome-error:/);
  }
  const answered = evil.waitForResponse(`${api}/workspaces`);
  await evil.evaluate(() => document.querySelector<HTMLFormElement>('#make')?.submit());
  expect((await answered).status()).toBe(401);
  // With all that a page may send without leave, and with what it has to ask leave for.
  const said = await evil.evaluate(
    async ([api, workspace]) => {
      const body = JSON.stringify({ name: 'forged' });
      const simple = { method: 'POST', mode: 'no-cors', credentials: 'include', body } as const;
      await fetch(`${api}/workspaces`, simple);
      await fetch(`${api}/logout`, simple);
      const ask = (path: string, how: RequestInit) =>
        fetch(`${api}${path}`, { credentials: 'include', ...how }).then(
          () => 'answered',
          () => 'refused',
        );
      const json = { 'content-type': 'application/json' };
      return Promise.all([
        ask('/workspaces', {}),
        ask('/workspaces', { method: 'POST', headers: json, body }),
        ask(`/workspaces/${workspace}/nodes/x`, { method: 'DELETE' }),
        ask('/whoami', { headers: { authorization: 'Bearer x' } }),
      ]);
    },
    [api, workspace] as const,
  );
  expect(said).toEqual(['refused', 'refused', 'refused', 'refused']);
  expect(await ada.workspaces()).toEqual(before);
  // Who opened the app has no hold of its window either.
  const opened = context.waitForEvent('page');
  await evil.evaluate((url) => void Object.assign(window, { app: window.open(url) }), server.url);
  await expect((await opened).getByRole('link', { name: MARK }).first()).toBeVisible();
  expect(await evil.evaluate(() => (window as { app?: Window }).app?.closed)).toBe(true);
  await others.end();
});
