import { expect, test } from '@playwright/test';
import { expectAccessible } from '../axe.ts';
import { PASSWORD, RealServer } from '../server.ts';

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
});

test.afterAll(() => server.end());

test('somebody signs in, sees that there are no workspaces, and signs out', async ({ page }) => {
  await page.goto(server.url);
  await expectAccessible(page);
  await page.getByLabel('User').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByText('No workspaces yet')).toBeVisible();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
});
