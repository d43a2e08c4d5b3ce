import { deflateSync } from 'node:zlib';
import type { SynclineClient } from '@syncline/api';
import { expectAccessible } from '../axe.ts';
import { filmOf, silence } from '../media.ts';
import { pdfOf } from '../pdf.ts';
import { RealServer } from '../server.ts';
import { inEveryLook, openWorkspace, row } from '../steps.ts';
import { expect, test } from '../test.ts';

let server: RealServer;
let ada: SynclineClient;
let workspace: string;

/** A drawing, a page and a note that would each run a script, were they ever more than text. */
const HOSTILE = '<script>window.broken = true</script><img src=x onerror="window.broken = true">';
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="window.broken=true">${HOSTILE}</svg>`;
const NAME = '<img src=x onerror=window.broken=true>.txt';

/** A picture of one colour. */
function png(): Blob {
  const part = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    const body = Buffer.concat([Buffer.from(type), data]);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(checksum(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.from([0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0]);
  const pixels = Buffer.concat(
    Array.from({ length: 8 }, () => Buffer.alloc(25, 0x66).fill(0, 0, 1)),
  );
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const all = [
    start,
    part('IHDR', head),
    part('IDAT', deflateSync(pixels)),
    part('IEND', Buffer.alloc(0)),
  ];
  return new Blob([Buffer.concat(all)]);
}

function checksum(bytes: Buffer): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}

test.beforeAll(async () => {
  server = await RealServer.start();
  server.addUser('ada');
  server.addWorkspace('ada', 'Notes', {
    'a.md': `# Title\n\nSome **bold** text.\n\n- one\n- two\n\n[go](javascript:window.broken=true) ${HOSTILE}\n`,
    'b.svg': SVG,
    'c.html': `<!doctype html>${HOSTILE}`,
    'd.txt': 'plain text',
    'e.bin': 'no preview',
    'f.txt': 'x'.repeat(600 * 1024),
    'g.png': 'no picture at all',
    [NAME]: 'named like a script',
  });
  ada = await server.client('ada');
  workspace = (await ada.workspaces())[0]?.id ?? '';
  await ada.putFile(workspace, 'h.png', png());
  await ada.putFile(workspace, 'i.wav', silence(0.5));
});

test.afterAll(() => server.end());

test('one file after the other is shown by keyboard, and the list goes on at the last one', async ({
  page,
}) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await page.keyboard.type('a.md');
  await page.keyboard.press('Enter');
  const preview = page.getByRole('dialog');
  await expect(preview.getByRole('heading', { name: 'Title' })).toBeVisible();
  await expect(preview.locator('strong')).toHaveText('bold');
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('onload="window.broken=true"')).toBeVisible();
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('<!doctype html>')).toBeVisible();
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('plain text')).toBeVisible();
  // What has no preview is passed over.
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('Only the first 512 KiB are shown.')).toBeVisible();
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('This file cannot be shown.')).toBeVisible();
  await page.keyboard.press('ArrowRight');
  const image = preview.getByRole('img', { name: 'h.png' });
  await expect
    .poll(() => image.evaluate((found) => (found as HTMLImageElement).naturalWidth))
    .toBe(8);
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('ArrowRight');
  const audio = preview.locator('audio');
  await expect
    .poll(() => audio.evaluate((found) => (found as HTMLAudioElement).duration))
    .toBe(0.5);
  await page.keyboard.press('ArrowLeft');
  await expect(image).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(preview).toHaveCount(0);
  await expect(page.getByRole('grid')).toBeFocused();
  await expect(row(page, 'h.png')).toHaveAttribute('aria-selected', 'true');
});

test('a film is shown, and plays', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  await ada.putFile(workspace, 'j.webm', await filmOf(page, 64, 48));
  await row(page, 'j.webm').click();
  await page.keyboard.press('Enter');
  const preview = page.getByRole('dialog');
  const film = preview.locator('video');
  await expect(film).toHaveAccessibleName('j.webm');
  const size = () =>
    film.evaluate((found) => {
      const { videoWidth, videoHeight } = found as HTMLVideoElement;
      return [videoWidth, videoHeight];
    });
  await expect.poll(size).toEqual([64, 48]);
  await film.evaluate((found) => (found as HTMLVideoElement).play());
  const at = () => film.evaluate((found) => (found as HTMLVideoElement).currentTime);
  await expect.poll(at).toBeGreaterThan(0.1);
  await inEveryLook(page, () => expectAccessible(page));
  await page.keyboard.press('Escape');
  await ada.delete(workspace, 'j.webm');
});

test('nothing in a file or its name is ever run', async ({ page }) => {
  await openWorkspace(page, server, 'ada', 'Notes');
  const preview = page.getByRole('dialog');
  for (const name of ['a.md', 'b.svg', 'c.html', NAME]) {
    await row(page, name).dblclick();
    await expect(preview.getByText(/broken|named like/).first()).toBeVisible();
    await expect(preview.getByRole('link')).toHaveCount(0);
    expect(await preview.locator('script, iframe, object, embed').count()).toBe(0);
    await page.keyboard.press('Escape');
    await expect(preview).toHaveCount(0);
  }
  await row(page, NAME).click();
  await page.keyboard.press('Alt+s');
  await expect(preview).toContainText(`Share “${NAME}”`);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Delete');
  await expect(page.getByText(`“${NAME}” deleted`)).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(row(page, NAME)).toBeVisible();
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  await expect(page.locator('img[src=x]')).toHaveCount(0);
});

test('a file that is deleted while it is shown is shown no more', async ({ page }) => {
  await ada.putFile(workspace, 'gone.txt', new Blob(['soon gone']));
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'gone.txt').dblclick();
  const preview = page.getByRole('dialog');
  await expect(preview.getByText('soon gone')).toBeVisible();
  await ada.delete(workspace, 'gone.txt');
  await expect(preview).toHaveCount(0);
  await expect(row(page, 'gone.txt')).toHaveCount(0);
});

test('a PDF file is drawn and read, runs nothing, and one with a password says so', async ({
  page,
}) => {
  const script = '/OpenAction << /S /JavaScript /JS (window.broken = true; app.alert\\(1\\)) >>';
  const texts = ['First page', ...Array.from({ length: 40 }, (_, at) => `Page ${at + 2}`)];
  await ada.putFile(workspace, 'p.pdf', pdfOf(texts, { catalog: script }));
  const locked = '/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4';
  const sums = `/O <${'12'.repeat(32)}> /U <${'34'.repeat(32)}>`;
  const trailer = `${locked} ${sums} >>`;
  await ada.putFile(workspace, 'q.pdf', pdfOf(['Locked'], { trailer }));
  await ada.putFile(workspace, 'r.pdf', new Blob(['%PDF-1.7 and nothing else']));
  await openWorkspace(page, server, 'ada', 'Notes');
  await row(page, 'p.pdf').dblclick();
  const preview = page.getByRole('dialog');
  const first = preview.getByRole('figure', { name: 'Page 1 of 41' });
  await expect(first).toContainText('First page');
  /** The colour of a canvas at a place of the page, from its left and lower edge; none where it is not drawn. */
  const colour = (figure: typeof first, left: number, up: number) =>
    figure.locator('canvas').evaluate(
      (canvas: HTMLCanvasElement, [left, up]) => {
        const pixel = [canvas.width * left, canvas.height * (1 - up)].map(Math.floor);
        const context = canvas.width > 0 ? canvas.getContext('2d') : null;
        return context ? [...context.getImageData(pixel[0] ?? 0, pixel[1] ?? 0, 1, 1).data] : null;
      },
      [left, up] as const,
    );
  await expect.poll(() => colour(first, 0.5, 0.2)).toEqual([26, 102, 230, 255]);
  await expect.poll(() => colour(first, 0.5, 0.9)).toEqual([255, 255, 255, 255]);
  await inEveryLook(page, () => expectAccessible(page));
  // What is far away is not kept.
  const last = preview.getByRole('figure', { name: 'Page 41 of 41' });
  expect(await colour(last, 0.5, 0.2)).toBeNull();
  await preview.getByRole('region', { name: 'p.pdf' }).press('End');
  await expect.poll(() => colour(last, 0.5, 0.2)).toEqual([26, 102, 230, 255]);
  await expect.poll(() => colour(first, 0.5, 0.2)).toBeNull();
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('This file wants a password of its own.')).toBeVisible();
  await page.keyboard.press('ArrowRight');
  await expect(preview.getByText('This file cannot be shown.')).toBeVisible();
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
});
