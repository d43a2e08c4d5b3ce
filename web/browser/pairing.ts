// Steps of two sides of a pairing.

import { readFile } from 'node:fs/promises';
import type { Browser, Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import type { RealServer } from './server.ts';
import { row, signIn } from './steps.ts';
import { expect } from './test.ts';

/** A code, as it is shown. */
export const CODE = /((?:[0-9A-Z]{4}-){6}[0-9A-Z]{4})/;

/** The digits in a question of the program. */
export const DIGITS = /shows (\d{3} \d{3})/;

/** The digits on a page. */
export const digitsOn = (page: Page) => page.getByText(/^\d{3} \d{3}$/);

/** What lies at the server of pairings. */
export async function boxesOf(client: SynclineClient, workspace: string): Promise<string[]> {
  const query = { prefix: 'pairing/' };
  const params = { workspace };
  const found = await client.call('GET /workspaces/{workspace}/objects', { params, query });
  return found.map(({ key }) => key.replace(/^pairing\/[0-9a-f]+\//, ''));
}

/** All that a page asks for, with what it sends. */
export function requestsOf(page: Page): string[] {
  const asked: string[] = [];
  page.on('request', (request) => {
    const sent = request.postDataBuffer()?.toString('latin1') ?? '';
    // What stands behind the `#` is shown here, and is no part of what is sent.
    const [address = ''] = request.url().split('#');
    asked.push(`${address} ${JSON.stringify(request.headers())} ${sent}`);
  });
  return asked;
}

/** Nothing of a code is in what was asked for, however it is written. */
export function expectUntold(asked: string[], code: string): void {
  expect(asked.length).toBeGreaterThan(0);
  const bare = code.replaceAll('-', '');
  const told = asked.filter((text) => text.toUpperCase().replaceAll('-', '').includes(bare));
  expect(told).toEqual([]);
}

export async function byDevice(page: Page, server: RealServer): Promise<void> {
  await signIn(page, server, 'ada');
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await page.getByRole('button', { name: 'Open it by another device' }).click();
  await expect(page.getByLabel('Code of the other device')).toBeFocused();
}

export async function enter(page: Page, code: string): Promise<void> {
  await page.getByLabel('Code of the other device').fill(code);
  await page.getByRole('button', { name: 'Go on' }).click();
}

export async function saved(page: Page, name: string): Promise<string> {
  const download = page.waitForEvent('download');
  await row(page, name).click();
  await page.getByRole('button', { name: 'Download' }).click();
  return (await readFile(await (await download).path())).toString();
}

export const ask = (page: Page) => page.getByRole('button', { name: 'Ask to be let in' }).click();

export async function another(browser: Browser): Promise<Page> {
  return (await browser.newContext()).newPage();
}
