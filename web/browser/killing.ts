// A browser with a profile on the disk, as people have one, which can be killed.

import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Page } from '@playwright/test';
import { expect } from './test.ts';

/** Those that a test has started and that may still run. */
const started: ChildProcess[] = [];

/** Starts one on a profile, which may be that of one that was killed. */
export async function startBrowser(
  profile: string,
): Promise<{ page: Page; process: ChildProcess }> {
  const port = join(profile, 'DevToolsActivePort');
  rmSync(port, { force: true });
  const flags = ['--headless', '--no-sandbox', '--disable-sync', '--lang=en-GB', '--no-first-run'];
  const process_ = spawn(
    process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    [...flags, `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank'],
    { stdio: 'ignore' },
  );
  started.push(process_);
  const address = () => {
    try {
      return readFileSync(port, 'utf8').split('\n')[0] ?? '';
    } catch {
      return '';
    }
  };
  await expect.poll(address).not.toBe('');
  const browser = await chromium.connectOverCDP(`http://127.0.0.1:${address()}`);
  const [context] = browser.contexts();
  if (!context) throw new Error('the browser has no window');
  const page = await context.newPage();
  // Such a page knows nothing of the limits of the configuration: what does not come is named.
  page.setDefaultTimeout(60_000);
  return { page, process: process_ };
}

/** Ends it at once: it has no time to write anything down. */
export async function kill(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const ended = new Promise((resolve) => process.once('exit', resolve));
  process.kill('SIGKILL');
  await ended;
}

/** Kills all that still run. */
export async function killAll(): Promise<void> {
  for (const process of started.splice(0)) await kill(process);
}
