import type { FileAnswer } from '@syncline/api';
import { expect, test } from 'vitest';
import { previewOf } from './kind.ts';
import { blocksOf, inlinesOf, type Inline } from './markdown.ts';
import { readBlob, readText } from './read.ts';

function answer(chunks: (string | number[])[], size?: number): FileAnswer {
  const bytes = chunks.map((chunk) =>
    typeof chunk === 'string' ? new TextEncoder().encode(chunk) : Uint8Array.from(chunk),
  );
  const all = bytes.reduce((sum, one) => sum + one.length, 0);
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const one of bytes) controller.enqueue(one);
      controller.close();
    },
  });
  return { body, size: size ?? all };
}

test('what may carry a script is shown as text, and what is not known not at all', () => {
  for (const name of ['a.svg', 'a.HTML', 'a.htm', 'a.xhtml', 'a.xml', 'a.js', 'x.png.svg']) {
    expect(previewOf(name, 1), name).toMatchObject({ kind: 'text', type: '' });
  }
  for (const name of ['a', 'png', 'a.exe', 'a.', '.']) {
    expect(previewOf(name, 1), name).toBeNull();
  }
  expect(previewOf('A.PNG', 1)).toMatchObject({ kind: 'image', type: 'image/png' });
  expect(previewOf('a.png', 65 * 1024 * 1024)).toBeNull();
  expect(previewOf('huge.log', 1e12)?.kind).toBe('text');
});

test('of a long text the beginning is read, and no sign is broken', async () => {
  expect(await readText(answer(['grü', 'n']), 100)).toEqual({
    text: 'grün',
    isCut: false,
    isBinary: false,
  });
  expect(await readText(answer(['abc', 'def', 'ghi']), 5)).toMatchObject({
    text: 'abcde',
    isCut: true,
  });
  expect((await readText(answer(['abcü']), 4)).text).toBe('abc');
  expect(await readText(answer(['abcde']), 5)).toMatchObject({ isCut: false });
  expect(await readText(answer([[0x61, 0xc3], [0xbc]]), 9)).toMatchObject({ text: 'aü' });
  expect((await readText(answer([[1, 0, 2]]), 9)).isBinary).toBe(true);
});

test('what broke off is not shown as if it were whole', async () => {
  const seen: number[] = [];
  const blob = await readBlob(answer(['ab', 'c']), 'image/png', (count) => seen.push(count));
  expect([blob.size, blob.type, seen]).toEqual([3, 'image/png', [2, 3]]);
  await expect(readBlob(answer(['ab'], 9), '', () => undefined)).rejects.toThrow('not reached');
});

const text = (value: string): Inline => ({ kind: 'text', text: value });

test('Markdown is read into its parts', () => {
  const blocks = blocksOf(
    '# Title #\n\nOne *two*\nthree.\n\n> quote\n\n```js\nx < *y*\n```\n---\n3. a\n   - b\n4. c\n',
  );
  expect(blocks).toEqual([
    { kind: 'heading', level: 1, inside: [text('Title')] },
    {
      kind: 'paragraph',
      inside: [text('One '), { kind: 'emphasis', inside: [text('two')] }, text('\nthree.')],
    },
    { kind: 'quote', blocks: [{ kind: 'paragraph', inside: [text('quote')] }] },
    { kind: 'code', text: 'x < *y*' },
    { kind: 'rule' },
    {
      kind: 'list',
      isOrdered: true,
      start: 3,
      items: [
        [
          { kind: 'paragraph', inside: [text('a')] },
          {
            kind: 'list',
            isOrdered: false,
            start: 1,
            items: [[{ kind: 'paragraph', inside: [text('b')] }]],
          },
        ],
        [{ kind: 'paragraph', inside: [text('c')] }],
      ],
    },
  ]);
});

test('signs in words and marks without an end stay text', () => {
  for (const plain of ['snake_case_name', '2 * 3 * 4', '**open', '`open', 'a [b] c', '\\*']) {
    expect(inlinesOf(plain), plain).toEqual([text(plain.replace('\\', ''))]);
  }
  expect(inlinesOf('**b** `c*`')).toEqual([
    { kind: 'strong', inside: [text('b')] },
    text(' '),
    { kind: 'code', text: 'c*' },
  ]);
});

test('HTML stays text, and no link leads into a script', () => {
  const html = '<img src=x onerror=alert(1)><script>alert(1)</script>';
  expect(blocksOf(html)).toEqual([{ kind: 'paragraph', inside: [text(html)] }]);
  for (const address of ['javascript:alert(1)', 'JaVaScRiPt:x', 'data:text/html,x', '//x', '#/']) {
    const written = `[a](${address})`;
    expect(inlinesOf(written), address).toEqual([text(written)]);
  }
  expect(inlinesOf('[a](https://example.org/x)')).toEqual([
    { kind: 'link', inside: [text('a')], address: 'https://example.org/x' },
  ]);
});

test('whatever is fed in is read in reasonable time', () => {
  const began = performance.now();
  for (const sign of ['>', '- ', '*', '[', '`', '_a', '1. ', '<h', '~~']) {
    blocksOf(sign.repeat(20_000));
    blocksOf(`${sign}\n`.repeat(5_000));
  }
  const spaces = ' '.repeat(100_000);
  for (const hostile of [`#${spaces}\rx`, `# a${spaces}a`, `# a ${'#'.repeat(100_000)}x`]) {
    blocksOf(hostile);
  }
  blocksOf(`a${'`'.repeat(200_000)}`);
  expect(performance.now() - began).toBeLessThan(20_000);
});
