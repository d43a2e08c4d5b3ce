import { fileURLToPath } from 'node:url';
import type { CDPSession, Page } from '@playwright/test';
import { serve } from '../../scripts/serve.mjs';
import { expectAccessible } from '../axe.ts';
import { expect, test } from '../test.ts';

const root = fileURLToPath(new URL('../../packages/file-grid/dist', import.meta.url));
let served: Awaited<ReturnType<typeof serve>>;

test.beforeAll(async () => {
  served = await serve({ root });
});

test.afterAll(() => served.close());

async function open(page: Page, rows = 100_000): Promise<void> {
  await page.goto(`${served.url}/?rows=${rows}`);
  await page.getByRole('grid').focus();
}

/** The name of the row that the keyboard is at. */
async function activeName(page: Page): Promise<string> {
  const id = await page.getByRole('grid').getAttribute('aria-activedescendant');
  return (await page.locator(`[id="${id}"]`).innerText()).split('\n')[0]?.trim() ?? '';
}

async function press(page: Page, ...keys: string[]): Promise<string> {
  for (const key of keys) await page.keyboard.press(key);
  return activeName(page);
}

const selected = (page: Page) => page.locator('#selected').innerText();

test('arrows, Home, End and pages move the active row and show it', async ({ page }) => {
  await open(page);
  expect(await activeName(page)).toBe('alder 000000.txt');
  expect(await press(page, 'ArrowDown')).toBe('birch 000001.txt');
  expect(await press(page, 'ArrowUp', 'ArrowUp')).toBe('alder 000000.txt');
  expect(await press(page, 'End')).toBe('hazel 099999.txt');
  await expect(page.getByText('hazel 099999.txt')).toBeInViewport();
  const up = await press(page, 'PageUp');
  expect(Number(up.slice(-10, -4))).toBeLessThan(99_990);
  expect(await press(page, 'PageDown')).toBe('hazel 099999.txt');
  expect(await press(page, 'Home')).toBe('alder 000000.txt');
  await expect(page.getByText('alder 000000.txt')).toBeInViewport();
  expect(await selected(page)).toBe('1');
});

test('a row that the keyboard moves to is never hidden by the titles or the edge', async ({
  page,
}) => {
  await open(page);
  await press(page, 'End');
  for (let step = 0; step < 40; step++) await page.keyboard.press('ArrowUp');
  const row = page.locator('[role=row].active');
  const titles = page.locator('.head');
  const [rowBox, titlesBox] = [await row.boundingBox(), await titles.boundingBox()];
  expect(rowBox?.y).toBeGreaterThanOrEqual((titlesBox?.y ?? 0) + (titlesBox?.height ?? 0) - 1);
});

test('typing letters jumps to a name, and one letter again to the next', async ({ page }) => {
  await open(page);
  expect(await press(page, 'f')).toBe('fir 000005.txt');
  await page.waitForTimeout(800);
  expect(await press(page, 'f')).toBe('fir 000013.txt');
  // A machine that stalls between two letters makes two names of one.
  await expect(async () => {
    await page.waitForTimeout(800);
    await page.keyboard.type('hazel 0012');
    expect(await activeName(page)).toBe('hazel 001207.txt');
  }).toPass();
});

test('Shift extends the selection, Ctrl walks without it, Space toggles, Escape clears', async ({
  page,
}) => {
  await open(page);
  await press(page, 'ArrowDown', 'Shift+ArrowDown', 'Shift+ArrowDown');
  expect(await selected(page)).toBe('3');
  await press(page, 'Shift+ArrowUp');
  expect(await selected(page)).toBe('2');
  await press(page, 'Control+ArrowDown', 'Control+ArrowDown', 'Control+ArrowDown', 'Space');
  expect(await selected(page)).toBe('3');
  await press(page, 'Space');
  expect(await selected(page)).toBe('2');
  await press(page, 'Control+a');
  expect(await selected(page)).toBe('100000');
  await press(page, 'Escape');
  expect(await selected(page)).toBe('0');
  await press(page, 'Home', 'Shift+End');
  expect(await selected(page)).toBe('100000');
});

test('clicks select, with Ctrl one more, with Shift a range, and a double click opens', async ({
  page,
}) => {
  await open(page);
  await page.getByText('cedar 000002.txt').click();
  await page.getByText('elm 000004.txt').click({ modifiers: ['Control'] });
  expect(await selected(page)).toBe('2');
  await page.getByText('hazel 000007.txt').click({ modifiers: ['Shift'] });
  expect(await selected(page)).toBe('4');
  await page.getByRole('row').nth(3).locator('[data-check]').click();
  expect(await selected(page)).toBe('5');
  await page.getByText('fir 000005.txt').dblclick();
  await expect(page.locator('#deed')).toHaveText('open fir 000005.txt');
});

test('Enter opens, F2 renames, and Delete leaves the keyboard at the next row', async ({
  page,
}) => {
  await open(page);
  await press(page, 'ArrowDown', 'Enter');
  await expect(page.locator('#deed')).toHaveText('open birch 000001.txt');
  await press(page, 'F2');
  await expect(page.locator('#deed')).toHaveText('rename birch 000001.txt');
  await press(page, 'Delete');
  await expect(page.locator('#deed')).toHaveText('delete');
  await expect(page.getByText('birch 000001.txt')).toHaveCount(0);
  expect(await activeName(page)).toBe('cedar 000002.txt');
  await expect(page.getByRole('grid')).toBeFocused();
});

test('an active row that is scrolled away stays named, and the next key comes back to it', async ({
  page,
}) => {
  await open(page);
  await press(page, 'ArrowDown');
  await page.getByRole('grid').evaluate((grid) => (grid.scrollTop = 1_000_000));
  await expect(page.getByText('birch 000001.txt')).not.toBeInViewport();
  expect(await activeName(page)).toBe('birch 000001.txt');
  expect(await press(page, 'ArrowDown')).toBe('cedar 000002.txt');
  await expect(page.getByText('cedar 000002.txt')).toBeInViewport();
});

test('the arrows to the sides go through the cells of a row', async ({ page }) => {
  await open(page);
  expect(await press(page, 'ArrowDown', 'ArrowRight')).toBe('birch 000001.txt');
  expect(await press(page, 'ArrowRight')).toBe('37 KiB');
  expect(await press(page, 'ArrowDown')).toBe('74 KiB');
  await press(page, 'ArrowLeft', 'ArrowLeft');
  const grid = page.getByRole('grid');
  expect(await grid.getAttribute('aria-activedescendant')).not.toMatch(/-\d$/);
});

test('axe-core finds nothing, at the top, in the middle and in the dark', async ({ page }) => {
  await open(page);
  await expectAccessible(page);
  await press(page, 'End', 'Control+a');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForTimeout(300);
  await expectAccessible(page);
});

/** The numbers of the rows in the order in which a screen reader gets to them. */
async function rowsRead(session: CDPSession): Promise<number[]> {
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const numbersIn = (id: string): number[] => {
    const node = byId.get(id);
    const number = /^\w+ (\d{6})\.txt/.exec(String(node?.name?.value ?? ''))?.[1];
    if (node?.role?.value === 'row' && number) return [Number(number)];
    return (node?.childIds ?? []).flatMap(numbersIn);
  };
  const grid = nodes.find((node) => node.role?.value === 'grid');
  return grid ? numbersIn(grid.nodeId) : [];
}

test('a screen reader is told how many rows there are, which one it is at, and in which order they stand', async ({
  page,
}) => {
  await open(page);
  await press(page, 'ArrowDown');
  await page.getByRole('grid').evaluate((grid) => (grid.scrollTop = 36 * 1_003));
  await page.waitForTimeout(400);
  await press(page, 'Control+ArrowDown');
  await page.waitForTimeout(400);
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  const grid = nodes.find((node) => node.role?.value === 'grid');
  const property = (name: string) =>
    grid?.properties?.find((one) => one.name === name)?.value as {
      value?: unknown;
      relatedNodes?: { backendDOMNodeId: number }[];
    };
  expect(grid?.name?.value).toBe('Trees');
  expect(property('multiselectable').value).toBe(true);
  expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe('100001');
  const active = property('activedescendant').relatedNodes?.[0]?.backendDOMNodeId;
  const row = nodes.find((node) => node.backendDOMNodeId === active);
  expect(row?.role?.value).toBe('row');
  expect(row?.name?.value).toContain('cedar 000002.txt');
  // Rows are read as they stand on the screen, whatever their places in the document.
  await page.getByRole('grid').evaluate((element) => (element.scrollTop = 36 * 1_003));
  await expect(async () => {
    const read = await rowsRead(session);
    const shown = read.filter((number) => number > 100);
    expect(shown.length).toBeGreaterThan(20);
    expect(shown).toEqual(shown.toSorted((a, b) => a - b));
  }).toPass();
});

test('the document stays small, and a scrolled row changes few nodes in it', async ({ page }) => {
  await open(page);
  const measured = await page.getByRole('grid').evaluate(async (grid) => {
    const frame = () => new Promise(requestAnimationFrame);
    const counts = { nodes: 0, changes: 0, moved: 0, rows: 0 };
    const observer = new MutationObserver((records) => {
      counts.changes += records.length;
      counts.moved += records.filter((record) => record.type === 'childList').length;
    });
    await frame();
    const body = grid.querySelector('.body') ?? grid;
    observer.observe(body, {
      subtree: true,
      childList: true,
      attributes: true,
      characterData: true,
    });
    const frames: number[] = [];
    let last = await frame();
    for (let step = 0; step < 200; step++) {
      const rows = step < 100 ? 3 : 25;
      grid.scrollTop += rows * 36;
      counts.rows += rows;
      const now = await frame();
      frames.push(now - last);
      last = now;
      counts.nodes = Math.max(counts.nodes, document.querySelectorAll('*').length);
    }
    await frame();
    observer.disconnect();
    frames.sort((a, b) => a - b);
    const at = (part: number) => Math.round(frames[Math.floor(frames.length * part)] ?? 0);
    return { ...counts, median: at(0.5), most: at(0.95), worst: Math.round(frames.at(-1) ?? 0) };
  });
  console.log(
    `frames: median ${measured.median} ms, 95 % within ${measured.most} ms, worst ${measured.worst} ms; ` +
      `${measured.nodes} elements, ${(measured.changes / measured.rows).toFixed(1)} changes for a row`,
  );
  expect(measured.nodes).toBeLessThan(300);
  expect(measured.changes / measured.rows).toBeLessThan(8);
  // Nodes come and go twice: when the active row is left behind, and never for a row that is scrolled.
  expect(measured.moved).toBeLessThan(4);
});

test('an empty grid, and one of three rows, are grids, too', async ({ page }) => {
  await open(page, 0);
  await page.keyboard.press('ArrowDown');
  await expectAccessible(page);
  await open(page, 3);
  expect(await press(page, 'End')).toBe('cedar 000002.txt');
  expect(await press(page, 'PageUp')).toBe('alder 000000.txt');
});
