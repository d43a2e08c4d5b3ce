// Names that would run a script, were they taken for anything but text.

import type { Locator, Page } from '@playwright/test';
import { expect } from './test.ts';

/** What a name does not become: an element, an attribute, a template, a link. */
export const MARK = `"'><img src=x onerror="window.broken=1">{{broken}}\${broken}`;

/** It as the name of a file. */
export const NAME = `${MARK}.txt`;

/** Nothing has become of a name but text. */
export async function expectNothingRun(page: Page, view: string): Promise<void> {
  const found = await page.evaluate(() => ({
    isBroken: 'broken' in window,
    elements: document.querySelectorAll('img[src="x"], [onerror], [onload], script:not([src])')
      .length,
  }));
  expect(found, view).toEqual({ isBroken: false, elements: 0 });
}

/** The name is there to be read, and nothing has become of it. */
export async function expectText(page: Page, view: string): Promise<void> {
  await expect(page.getByText(MARK).filter({ visible: true }).first(), view).toBeVisible();
  await expectNothingRun(page, view);
}

/** A part of a page says this in so many letters, and nothing has become of it. */
export async function expectSaid(part: Locator, text: string, view: string): Promise<void> {
  await expect(part.first(), view).toBeVisible();
  await expect(part.first(), view).toContainText(text);
  await expectNothingRun(part.page(), view);
}
