// Drives the lab page in Chromium for `cargo xtask bench web`. Each line that comes is an order in JSON, and is answered by one line:
// `{"open": {...}}` signs in and goes to the lab, `{"run": {...}}` is handed to the page (app/src/lab/driven.ts). It ends with its input.
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { chromium } from '@playwright/test';

/** @typedef {{ url: string, user: string, password: string, server: number }} Open `server` is the number of its process. */

/** @param {string} path */
function words(path) {
  try {
    return readFileSync(path, 'utf8').trim().split(/\s+/);
  } catch {
    // A thread or a process may end while it is looked at.
    return [];
  }
}

/** @param {number} process @returns {string[]} */
function threads(process) {
  try {
    return readdirSync(`/proc/${process}/task`).map((task) => `/proc/${process}/task/${task}`);
  } catch {
    return [];
  }
}

/** Milliseconds of processor time of a process that runs, thread by thread: the kernel counts them in nanoseconds.
 * @param {number} process @returns {number} */
function costOf(process) {
  const nanoseconds = threads(process).map((task) => Number(words(`${task}/schedstat`)[0] ?? 0));
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}

/** All processes that a process has started, and those that they have.
 * @param {number} process @returns {number[]} */
function descendants(process) {
  const children = threads(process).flatMap((task) => words(`${task}/children`));
  return children
    .filter((word) => word !== '')
    .flatMap((word) => [Number(word), ...descendants(Number(word))]);
}

const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});

/** A busy machine is no reason to give up, in milliseconds. */
const PATIENCE = 180_000;

/** @type {import('@playwright/test').Page | undefined} */
let page;

/** @param {Open} open */
async function openLab({ url, user, password, server }) {
  await page?.context().close();
  const context = await browser.newContext({ locale: 'en-GB' });
  context.setDefaultTimeout(PATIENCE);
  page = await context.newPage();
  await page.exposeFunction('synclineCost', () => ({
    client: descendants(process.pid).reduce((sum, one) => sum + costOf(one), 0),
    server: costOf(server),
  }));
  await page.goto(url);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Settings' }).waitFor();
  await page.goto(`${url}/#/lab`);
  await page.getByRole('heading', { name: 'Lab', level: 1 }).waitFor();
  return { browser: `Chromium ${browser.version()}` };
}

/** Chooses a file of the disk in the page, which does not have it in memory.
 * @param {import('@playwright/test').Page} page @param {string} path */
async function choose(page, path) {
  const input = await page.evaluateHandle(() => {
    const input = document.createElement('input');
    input.type = 'file';
    return input;
  });
  await input.setInputFiles(path);
  return page.evaluateHandle((input) => input.files?.[0] ?? null, input);
}

/** @param {{ open?: Open, run?: import('../app/src/lab/driven.ts').Order & { path: string | null } }} order `path` names the old version, where it
 * is not made in the page. */
async function answer({ open, run }) {
  if (open) return openLab(open);
  if (!page || !run) throw new Error('open first, then run');
  const file = run.path === null ? null : await choose(page, run.path);
  const rows = await page.evaluate(
    ({ order, file }) => {
      if (!window.synclineLab) throw new Error('the page offers no lab');
      return window.synclineLab(order, file);
    },
    { order: run, file },
  );
  await file?.dispose();
  return { rows };
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = await answer(JSON.parse(line));
  } catch (error) {
    said = { error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
await browser.close();
