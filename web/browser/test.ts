// Tests in a browser that fail where the page throws, or breaks the policy it is served with.

import { expect, test as plain, type Page } from '@playwright/test';

export { expect };

/** Gathers what a page complains about, except for answers that are errors. */
export function complaintsOf(page: Page, found: string[] = []): string[] {
  page.on('pageerror', (error) => found.push(String(error)));
  page.on('console', (message) => {
    const isAnswer = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isAnswer) found.push(message.text());
  });
  return found;
}

export const test = plain.extend({
  page: async ({ page, context }, use) => {
    const complaints = complaintsOf(page);
    // Tabs that a test opens beside it.
    context.on('page', (tab) => complaintsOf(tab, complaints));
    await use(page);
    expect(complaints).toEqual([]);
  },
});
