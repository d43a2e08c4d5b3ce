// A folder in sync of which the browser tells what has changed: nobody waits for the next look, which comes every four seconds.

import { card, edit, givePicked, keepInSync, textOf } from '../picked.ts';
import { RealServer } from '../server.ts';
import { openWorkspace } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Box', { 'plan.txt': 'first' });
});

test.afterAll(() => server.end());

for (const [what, isTold] of [
  ['goes up at once where the browser tells of it', true],
  ['waits for the next look where it does not', false],
] as const) {
  test(`a change in the folder ${what}`, async ({ page }) => {
    const ada = await server.client('ada');
    const workspace = (await ada.workspaces())[0]?.id ?? '';
    const there = () => textOf(ada, workspace, 'plan.txt');
    const before = await there();
    await givePicked(page);
    await page.clock.install();
    if (!isTold)
      await page.addInitScript(() => Reflect.deleteProperty(window, 'FileSystemObserver'));
    await openWorkspace(page, server, 'ada', 'Box');
    expect(await page.evaluate(() => 'FileSystemObserver' in window)).toBe(isTold);
    await keepInSync(page);
    await page.clock.pauseAt(Date.now() + 60_000);
    // A look that fell due with that is over before anything changes.
    await page.waitForTimeout(5_000);
    await expect(card(page)).toContainText('In sync, watching');
    await edit(page, 'plan.txt', `second, ${what}`);
    // The clock of the page goes on by less than two seconds, so no other look falls due.
    for (let ticks = 0; ticks < 35; ticks++) {
      await page.clock.runFor(50);
      await page.waitForTimeout(50);
    }
    if (isTold) await expect.poll(there).toBe(`second, ${what}`);
    expect(await there()).toBe(isTold ? `second, ${what}` : before);
    await page.clock.resume();
    await expect.poll(there).toBe(`second, ${what}`);
  });
}
