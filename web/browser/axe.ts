import { expect, type Page } from '@playwright/test';
import axe from 'axe-core';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Fails where axe-core finds anything. */
export async function expectAccessible(page: Page): Promise<void> {
  // A colour that is on its way to another one is none that anybody reads.
  await page.evaluate(() => {
    const all = document.getAnimations().filter((one) => one instanceof CSSTransition);
    return Promise.allSettled(all.map((one) => one.finished));
  });
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async (tags) => {
    const { axe: found } = window as unknown as { axe: typeof axe };
    const results = await found.run({ runOnly: tags });
    return results.violations.map(({ id, nodes }) => ({
      id,
      nodes: nodes.map((node) => `${node.html} ${node.failureSummary ?? ''}`),
    }));
  }, TAGS);
  expect(violations).toEqual([]);
}
