// What every view has to hold: nothing that axe-core finds, in light and dark, at a desk and on a phone. And what the first page and a large
// folder cost: sizes and counts are held, times are only said, since machines differ.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { MANY, pageOf } from '../many.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, row, signIn } from '../steps.ts';
import { complaintsOf, expect, test } from '../test.ts';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const FIRST_PAGE_MAX = 120 * 1024;

let server: RealServer;
let ada: SynclineClient;
let workspace: string;
let secrets: string[];
let page: Page;
let complaints: string[];

test.beforeAll(async ({ browser }) => {
  server = await RealServer.start();
  for (const name of ['ada', 'bob']) server.addUser(name);
  server.addWorkspace('ada', 'Home', {
    'moving.md': '# Moving\n\n1. **Call**\n\n> a [form](https://example.org)\n\n```\ncode\n```\n',
    'plan.txt': 'first',
    'Letters/to bob.txt': 'Dear Bob',
    'gone.txt': 'gone',
  });
  server.addWorkspace('ada', 'Diary', { 'a.txt': 'a' }, ['--sealed']);
  server.share('ada', 'Home', 'bob:edit');
  ada = await server.client('ada');
  workspace = (await ada.workspaces()).find(({ name }) => name === 'Home')?.id ?? '';
  await ada.putFile(workspace, 'plan.txt', new Blob(['second']));
  await ada.delete(workspace, 'gone.txt');
  const params = { workspace };
  const make = async (more: object) => {
    const body = { path: 'Letters', ...more };
    return (await ada.call('POST /workspaces/{workspace}/links', { params, body })).secret ?? '';
  };
  secrets = [await make({}), await make({ password: 'open sesame' })];
  await ada.call('POST /tokens', { body: { name: 'Backup', scope: 'read' } });
  page = await browser.newPage();
  complaints = complaintsOf(page);
});

test.afterAll(async () => {
  await page.close();
  await server.end();
  expect(complaints).toEqual([]);
});

const dialog = () => page.getByRole('dialog');
const heading = (name: string) => page.getByRole('heading', { name, level: 1 });
const button = (name: string) => page.getByRole('button', { name, exact: true });

async function go(address: string): Promise<void> {
  await page.goto(`${server.url}/#/${address}`);
}

async function openHome(): Promise<void> {
  await go(`w/${workspace}`);
  await expect(row(page, 'plan.txt')).toBeVisible();
}

/** Every view, and how somebody gets there. */
const VIEWS: [string, () => Promise<void>][] = [
  ['sign-in', () => page.goto(server.url).then(() => undefined)],
  [
    'an invitation',
    async () => {
      await page.goto(server.invite('--name', 'eve', '--quota', '5MiB'));
      await expect(page.getByText('room for 5 MiB')).toBeVisible();
    },
  ],
  [
    'workspaces',
    async () => {
      await signIn(page, server, 'ada');
      await expect(page.getByRole('link', { name: 'Home' })).toBeVisible();
    },
  ],
  [
    'making a workspace',
    async () => {
      await button('New workspace').click();
      await expect(dialog()).toBeVisible();
    },
  ],
  ['files', openHome],
  [
    'files that are selected',
    async () => {
      await openHome();
      await row(page, 'plan.txt').click();
      await expect(button('Rename')).toBeVisible();
    },
  ],
  [
    'versions',
    async () => {
      await page.keyboard.press('Alt+i');
      await expect(page.getByText('Version 2')).toBeVisible();
    },
  ],
  [
    'moving',
    async () => {
      await openHome();
      await row(page, 'plan.txt').click();
      await page.keyboard.press('Alt+m');
      await expect(dialog().getByRole('button', { name: 'Letters' })).toBeVisible();
    },
  ],
  [
    'naming a folder',
    async () => {
      await page.keyboard.press('Escape');
      // While it closes, no other one opens.
      await expect(dialog()).toBeHidden();
      await page.keyboard.press('Alt+n');
      await expect(dialog().getByRole('textbox')).toBeFocused();
      await page.keyboard.type('plan.txt');
      await page.keyboard.press('Enter');
      await expect(dialog().getByRole('alert')).toContainText('is there already');
    },
  ],
  [
    'people and links',
    async () => {
      await page.keyboard.press('Escape');
      await go(`w/${workspace}`);
      await button('Clear selection').click();
      await button('Share').click();
      await expect(dialog().getByRole('button', { name: 'Remove bob' })).toBeVisible();
      await expect(dialog().getByText('downloads').first()).toBeVisible();
    },
  ],
  [
    'making a link',
    async () => {
      await dialog().getByRole('button', { name: 'New link' }).click();
      await expect(dialog().getByRole('button', { name: 'Make one up' })).toBeVisible();
    },
  ],
  [
    'preview',
    async () => {
      await page.keyboard.press('Escape');
      await expect(dialog()).toHaveCount(0);
      await row(page, 'moving.md').click();
      await button('Preview').click();
      await expect(dialog().getByText('Call', { exact: true })).toBeVisible();
    },
  ],
  [
    'transfers and notices',
    async () => {
      await page.keyboard.press('Escape');
      await page
        .locator('main input[type=file]')
        .first()
        .setInputFiles([{ name: 'plan.txt', mimeType: 'text/plain', buffer: Buffer.from('x') }]);
      await expect(page.getByText('A file of this name is there already.')).toBeVisible();
      await row(page, 'moving.md').click();
      await page.keyboard.press('Delete');
      await expect(page.getByText('“moving.md” deleted')).toBeVisible();
    },
  ],
  [
    'trash',
    async () => {
      await button('Skip').click();
      await button('Clear finished').click();
      await go(`t/${workspace}`);
      await expect(row(page, 'gone.txt')).toBeVisible();
    },
  ],
  [
    'conflicts',
    async () => {
      await go(`c/${workspace}`);
      await expect(page.getByText('No conflicts')).toBeVisible();
      await ada.putFile(workspace, 'plan.txt', new Blob(['here']));
      server.write('ada', 'Home', 'plan.txt', 'there');
      await expect(page.getByText('Kept beside it')).toBeVisible();
      await expect(page.getByText(/by you, on/)).toHaveCount(2);
    },
  ],
  [
    'keeping both',
    async () => {
      await page.getByRole('button', { name: /^Keep both: / }).click();
      await expect(page.getByLabel('Keep both, this one as')).toBeFocused();
    },
  ],
  [
    'activity',
    async () => {
      await go(`a/${workspace}`);
      await expect(page.getByRole('heading', { name: 'Today' })).toBeVisible();
    },
  ],
  [
    'search',
    async () => {
      await openHome();
      await button('Search').click();
      await page.keyboard.type('t');
      await expect(dialog().getByRole('option').first()).toBeVisible();
    },
  ],
  [
    'storage of a workspace',
    async () => {
      await go(`u/${workspace}`);
      await expect(page.locator('main canvas')).toBeVisible();
    },
  ],
  [
    'storage as tables',
    async () => {
      for (const name of ['Files by kind', 'New data by day']) {
        await button(`Show as table: ${name}`).click();
      }
      await expect(page.getByRole('table')).toHaveCount(3);
    },
  ],
  [
    'storage of all workspaces',
    async () => {
      await go('storage');
      await expect(page.getByRole('link', { name: /^Home/ })).toBeVisible();
    },
  ],
  [
    'account',
    async () => {
      await page.keyboard.press('Escape');
      await go('account');
      await expect(page.getByText('Backup')).toBeVisible();
    },
  ],
  [
    'settings',
    async () => {
      await button('Settings').click();
      await expect(dialog()).toBeVisible();
    },
  ],
  [
    'shortcuts',
    async () => {
      await page.keyboard.press('Escape');
      await button('Keyboard shortcuts').click();
      await expect(dialog()).toContainText('Keyboard shortcuts');
    },
  ],
  [
    'lab',
    async () => {
      await page.keyboard.press('Escape');
      await go('lab');
      await expect(heading('Lab')).toBeVisible();
      await expect(button('Run all methods')).toBeVisible();
    },
  ],
  [
    'the code of another device',
    async () => {
      await go('pair/0000-0000');
      await expect(page.getByRole('alert')).toContainText('There is a slip in this code');
      expect(page.url()).toMatch(/#\/pair$/);
    },
  ],
  [
    'an empty folder',
    async () => {
      await ada.makeFolder(workspace, 'Empty');
      await go(`w/${workspace}/Empty`);
      await expect(page.getByText('This folder is empty')).toBeVisible();
    },
  ],
  [
    'what is not there',
    async () => {
      await go(`w/${workspace}/Nowhere`);
      await expect(page.getByRole('alert')).toContainText('It is not there any more.');
    },
  ],
  [
    'a link to a folder',
    async () => {
      await go(`s/${secrets[0]}`);
      await expect(row(page, 'to bob.txt')).toBeVisible();
    },
  ],
  [
    'a link behind a password',
    async () => {
      await go(`s/${secrets[1]}`);
      await expect(page.getByLabel('Password')).toBeVisible();
    },
  ],
  [
    'a link that leads nowhere',
    async () => {
      await go('s/nothing');
      await expect(page.getByRole('alert')).toBeVisible();
    },
  ],
];

test('axe-core finds nothing in any view, in light and dark, at a desk and on a phone', async () => {
  const began = Date.now();
  // Colours on their way from one theme to the other are neither.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  for (const [name, open] of VIEWS) {
    await test.step(name, async () => {
      await open();
      await inEveryLook(page, () => expectAccessible(page));
    });
  }
  console.log(`${VIEWS.length} views, each in four looks: ${Date.now() - began} ms`);
});

test('the first page weighs at most 120 KiB as it is sent, and the core, the lab and the charts are no part of it', async ({
  page: fresh,
}) => {
  const loaded = new Set<string>();
  fresh.on('response', (response) => loaded.add(new URL(response.url()).pathname));
  await fresh.goto(server.url);
  await expect(fresh.getByRole('button', { name: 'Sign in' })).toBeVisible();
  const names = [...loaded].map((path) => (path === '/' ? 'index.html' : path.slice(1)));
  const packed = new Set(readdirSync(DIST, { recursive: true, encoding: 'utf8' }));
  const sizeOf = (name: string) =>
    readFileSync(`${DIST}/${packed.has(`${name}.gz`) ? `${name}.gz` : name}`).length;
  const size = names.reduce((sum, name) => sum + sizeOf(name), 0);
  console.log(`the first page: ${(size / 1024).toFixed(1)} KiB in ${names.length} files`);
  expect(names.filter((name) => /\.(js|css)$/.test(name)).length).toBeGreaterThan(1);
  expect(names.filter((name) => /wasm|worker|Lab|Storage/.test(name))).toEqual([]);
  expect(size).toBeLessThanOrEqual(FIRST_PAGE_MAX);
});

test('a folder of 100,000 entries shows its first rows at once, and scrolls with few nodes', async ({
  page: fresh,
}) => {
  const template = await ada.node(workspace, 'plan.txt');
  if (!template) throw new Error('it was put');
  await signIn(fresh, server, 'ada');
  await fresh.getByRole('link', { name: 'Home' }).click();
  await expect(row(fresh, 'plan.txt')).toBeVisible();
  await fresh.route('**/folders/Letters*', (route) => {
    const start = Number(new URL(route.request().url()).searchParams.get('start_after') ?? 0);
    return route.fulfill({ json: pageOf(template, start) });
  });
  const times = await fresh.evaluateHandle(() => {
    const found = { left: 0, there: 0 };
    addEventListener('dblclick', () => (found.left = performance.now()), { capture: true });
    const look = () => {
      const isThere = document.querySelector('[role="grid"]')?.textContent.includes('000000');
      if (isThere) found.there = performance.now();
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    return found;
  });
  await row(fresh, 'Letters').dblclick();
  await expect(fresh.getByText('100,000 items', { exact: true })).toBeVisible();
  const first = await times.evaluate(({ left, there }) => there - left);
  const grid = fresh.getByRole('grid');
  await expect(grid).toHaveAttribute('aria-rowcount', String(MANY + 1));
  const seen = await grid.evaluate(async (element) => {
    const frame = () => new Promise<number>(requestAnimationFrame);
    const frames: number[] = [];
    let nodes = 0;
    let last = await frame();
    for (let step = 0; step < 120; step++) {
      element.scrollTop += step < 100 ? 36 * 5 : 36 * 4_000;
      const now = await frame();
      frames.push(now - last);
      last = now;
      nodes = Math.max(nodes, document.querySelectorAll('*').length);
    }
    frames.sort((a, b) => a - b);
    return { nodes, median: frames[60] ?? 0, worst: frames.at(-1) ?? 0 };
  });
  console.log(
    `100,000 entries: first rows after ${Math.round(first)} ms, frames of ${Math.round(seen.median)} ms, worst ${Math.round(seen.worst)} ms, ${seen.nodes} elements`,
  );
  expect(seen.nodes).toBeLessThan(700);
  await grid.focus();
  await fresh.keyboard.press('End');
  await expect(row(fresh, '099999.txt')).toBeVisible();
});
