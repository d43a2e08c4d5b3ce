import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { readBundle } from './bundle.ts';

const FILES: Record<string, string> = { 'assets/a.js': 'run()', 'index.html': '<!doctype html>' };
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const LIST = Object.entries(FILES)
  .map(([name, text]) => `${hashOf(text)}  ${name}\n`)
  .join('');

function served(files: Record<string, string>): (path: string) => Promise<ArrayBuffer> {
  return (path) => {
    const text = files[path === '/' ? 'index.html' : path.slice(1)];
    if (text === undefined) return Promise.reject(new RangeError(path));
    return Promise.resolve(new TextEncoder().encode(text).buffer);
  };
}

test('the hash of the app is that of its list, and every file is compared', async () => {
  const bundle = await readBundle(served({ ...FILES, 'files.txt': LIST }), ['/assets/a.js']);
  expect(bundle).toEqual({ hash: hashOf(LIST), files: 2, wrong: [] });
});

test('a file that is another one, and one that is in no list, are named', async () => {
  const changed = { ...FILES, 'assets/a.js': 'steal()', 'files.txt': LIST };
  const bundle = await readBundle(served(changed), ['/assets/a.js', '/assets/b.js']);
  expect(bundle.wrong).toEqual(['assets/a.js', 'assets/b.js']);
});

test.each(['', 'nothing\n', '<!doctype html>\n', `${hashOf('')}  assets/a.js\n`])(
  'a list that is none is no list of nothing: %j',
  async (list) => {
    await expect(readBundle(served({ ...FILES, 'files.txt': list }), [])).rejects.toThrow(
      RangeError,
    );
  },
);

test('a file that is not there is no success', async () => {
  const broken = { 'index.html': FILES['index.html'] ?? '', 'files.txt': LIST };
  await expect(readBundle(served(broken), [])).rejects.toThrow(RangeError);
});
