// Steps that many journeys take.

import type { Page } from '@playwright/test';
import { PASSWORD } from './server.ts';
import { expect } from './test.ts';

export async function signIn(page: Page, server: Place, user: string): Promise<void> {
  await page.goto(server.url);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Takes from a browser everything that it keeps of a server. */
export async function wipeStorage(page: Page, server: Place): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const storageTypes = 'indexeddb,local_storage,cookies,cache_storage';
  await session.send('Storage.clearDataForOrigin', { origin: server.url, storageTypes });
}

/** Returns what lets the browser keep so many bytes more for a server than it does then, or as many as it likes again. */
export async function storageOf(
  page: Page,
  server: Place,
): Promise<(more?: number) => Promise<unknown>> {
  const session = await page.context().newCDPSession(page);
  const origin = server.url;
  return async (more) => {
    if (more === undefined) return session.send('Storage.overrideQuotaForOrigin', { origin });
    const { usage } = await session.send('Storage.getUsageAndQuota', { origin });
    const quotaSize = Math.ceil(usage) + more;
    return session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize });
  };
}

/** Where somebody signs in: at a server, or at what stands before it. */
type Place = { readonly url: string };

/** Opens the root of a workspace with the keyboard in the list. */
export async function openWorkspace(
  page: Page,
  server: Place,
  user: string,
  name: string,
): Promise<void> {
  await signIn(page, server, user);
  await page.getByRole('link', { name }).click();
  await expect(page.getByRole('row').nth(1)).toBeVisible();
  await page.getByRole('grid').focus();
}

export const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

/** Looks at a page in both themes, and at the width of a phone. */
export async function inEveryLook(page: Page, look: () => Promise<void>): Promise<void> {
  const before = page.viewportSize();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 720 });
      await look();
      const tooWide = await page.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll('dialog, main')]
          .filter((found) => found.scrollWidth > found.clientWidth)
          .map((found) => `${found.nodeName} ${found.scrollWidth} > ${found.clientWidth}`),
      );
      expect(tooWide).toEqual([]);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  if (before) await page.setViewportSize(before);
}

/** Opens an encrypted workspace that is unlocked; `known` is a file in its root. */
export async function openSealed(
  page: Page,
  server: Place,
  user: string,
  known: string,
): Promise<void> {
  await signIn(page, server, user);
  await page.getByRole('link', { name: /Encrypted workspace/ }).click();
  await unlock(page, known);
}

/** Unlocks it where it is asked for. */
export async function unlock(page: Page, known: string): Promise<void> {
  await page.getByLabel('Passphrase or recovery key').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(row(page, known)).toBeVisible();
}
