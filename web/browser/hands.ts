// How somebody does what a story tells: with a mouse, or with keys alone. A test sets no focus for either.

import type { Locator, Page } from '@playwright/test';
import { row } from './steps.ts';
import { expect } from './test.ts';

const STOPS_MAX = 80;

/** Goes to something by Tab, which has to be seen when it has the keyboard. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await expect(target).toBeVisible();
  for (let stop = 0; stop < STOPS_MAX; stop++) {
    if (await target.evaluate((element) => element === document.activeElement)) {
      await expect(target).toBeInViewport();
      return;
    }
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${String(target)}`);
}

/** Goes to a button or a link by Tab, and presses it. */
export async function press(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

export interface Hand {
  /** Presses a button, or follows a link. */
  press(target: Locator): Promise<void>;
  /** Types into a field. */
  type(target: Locator, text: string): Promise<void>;
  /** Types into a field in place of what is in it. */
  retype(target: Locator, text: string): Promise<void>;
  /** Sends a form that was typed into: by its button, or from the field. */
  submit(button: Locator): Promise<void>;
  /** Selects a row of the list, and nothing else. */
  choose(name: string): Promise<void>;
  /** Opens what a row of the list stands for. */
  open(name: string): Promise<void>;
  /** Closes what is in front. */
  close(): Promise<void>;
}

export function mouse(page: Page): Hand {
  return {
    press: (target) => target.click(),
    type: async (target, text) => {
      await target.click();
      await page.keyboard.type(text);
    },
    retype: async (target, text) => {
      await target.click({ clickCount: 3 });
      await page.keyboard.type(text);
    },
    submit: (button) => button.click(),
    choose: (name) => row(page, name).click(),
    open: (name) => row(page, name).dblclick(),
    close: () => page.getByRole('dialog').getByRole('button', { name: 'Close' }).click(),
  };
}

export function keys(page: Page): Hand {
  const choose = async (name: string) => {
    await expect(row(page, name)).toBeVisible();
    await tabTo(page, page.getByRole('grid'));
    await page.keyboard.type(name);
    await expect(row(page, name)).toHaveAttribute('aria-selected', 'true');
  };
  return {
    press: (target) => press(page, target),
    type: async (target, text) => {
      await tabTo(page, target);
      await page.keyboard.type(text);
    },
    retype: async (target, text) => {
      await tabTo(page, target);
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.type(text);
    },
    submit: () => page.keyboard.press('Enter'),
    choose,
    open: async (name) => {
      await choose(name);
      await page.keyboard.press('Enter');
    },
    close: async () => {
      await page.keyboard.press('Escape');
      // Whoever closes something is somewhere, and not at the beginning of the page again.
      await expect
        .poll(() => page.evaluate(() => document.activeElement === document.body))
        .toBe(false);
    },
  };
}
