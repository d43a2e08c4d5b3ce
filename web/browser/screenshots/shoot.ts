import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';

const FOLDER = fileURLToPath(new URL('../../../docs/guide/web', import.meta.url));

/** Takes a picture of what is shown, in each look. */
export async function shoot(page: Page, name: string): Promise<void> {
  for (const [look, colorScheme, width, height] of [
    ['light', 'light', 1100, 700],
    ['dark', 'dark', 1100, 700],
    ['phone', 'light', 390, 780],
  ] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height });
    // The list has as many rows as there is room for.
    await page.waitForTimeout(250);
    await page.screenshot({ path: `${FOLDER}/${name}-${look}.png`, animations: 'disabled' });
  }
  await page.setViewportSize({ width: 1100, height: 700 });
}
