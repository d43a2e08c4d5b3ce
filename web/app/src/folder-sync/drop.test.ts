import { expect, test } from 'vitest';
import { folderOfDrop, sendDropped } from './drop.ts';
import { ModelRows, ModelServer } from './model-server.testing.ts';
import { World } from './world.testing.ts';

const signal = new AbortController().signal;

async function drop(world: World, files: Record<string, [string, number]>) {
  const ports = {
    server: new ModelServer(world),
    rows: new ModelRows(world),
    digest: async (file: Blob) => `content ${await file.text()}`,
    now: () => world.tick(),
    label: 'conflict browser',
  };
  const all = Object.entries(files).map(
    ([path, [content, lastModified]]) =>
      [path, new File([content], path, { lastModified })] as const,
  );
  const report = await sendDropped(ports, new Map(all), signal, () => undefined);
  const { up, unchanged, uploaded, conflicts } = report;
  const problems = report.problems.map(({ path, reason }) => `${path} ${reason}`).sort();
  return { up, unchanged, uploaded, conflicts, problems };
}

const nothing = { up: 0, unchanged: 0, uploaded: 0, conflicts: [], problems: [] };
const content = (world: World, path: string) => world.there.get(path)?.content;

test('what is new goes up, what is known is not even read, and what has changed goes over what was sent', async () => {
  const world = new World();
  const files: Record<string, [string, number]> = { 'a/b/f': ['1', 1], g: ['22', 1] };
  expect(await drop(world, files)).toEqual({ ...nothing, up: 2, uploaded: 3 });
  expect(World.show(world.there)).toEqual([
    'a folder ',
    'a/b folder ',
    'a/b/f file 1',
    'g file 22',
  ]);
  const calls: string[] = [];
  world.before = (name) => void calls.push(name);
  expect(await drop(world, files)).toEqual({ ...nothing, unchanged: 2 });
  expect(calls).toEqual(['seen', 'list', 'rows']);
  expect(await drop(world, { ...files, g: ['33', 2] })).toEqual({
    ...nothing,
    up: 1,
    unchanged: 1,
    uploaded: 2,
  });
  expect(world.there.get('g')).toMatchObject({ content: '33', version: 2 });
  // Touched, and the same.
  expect(await drop(world, { g: ['33', 3] })).toEqual({ ...nothing, unchanged: 1 });
});

test('what is saved while a file goes up goes up with the next drop', async () => {
  const world = new World();
  let text = '1';
  const saved = new File(['1'], 'f', { lastModified: 1 });
  // A browser that does not notice it reads what is there by then.
  saved.text = () => Promise.resolve(text);
  const ports = {
    server: new ModelServer(world),
    rows: new ModelRows(world),
    digest: async (file: Blob) => `content ${await file.text()}`,
    now: () => 1_000_000,
    label: 'conflict browser',
  };
  world.after = (name) => {
    if (name === 'put') text = '2';
  };
  await sendDropped(ports, new Map([['f', saved]]), signal, () => undefined);
  expect(world.rows.get('f')?.digest).toBe('content 1');
  world.after = () => undefined;
  expect(await drop(world, { f: ['2', 1_000_001] })).toEqual({ ...nothing, up: 1, uploaded: 1 });
  expect(content(world, 'f')).toBe('2');
});

test('a file that was changed on both sides goes up beside it, and once', async () => {
  const world = new World();
  await drop(world, { 'f.txt': ['1', 1] });
  world.putThere('f.txt', { kind: 'file', content: 'theirs' });
  const conflicts = ['f (conflict browser).txt'];
  const edited: Record<string, [string, number]> = { 'f.txt': ['mine', 2] };
  expect(await drop(world, edited)).toEqual({ ...nothing, up: 1, uploaded: 4, conflicts });
  expect(await drop(world, edited)).toEqual({ ...nothing, unchanged: 1 });
  expect(content(world, 'f.txt')).toBe('theirs');
  expect(content(world, 'f (conflict browser).txt')).toBe('mine');
  expect(world.marks).toEqual(['f (conflict browser).txt beside n0.1']);
});

test('what the server has newer, or has deleted since, is not sent, and named', async () => {
  const world = new World();
  await drop(world, { f: ['1', 1], g: ['2', 1] });
  world.putThere('f', { kind: 'file', content: 'newer' });
  world.there.delete('g');
  const problems = ['f newer', 'g deleted'];
  expect(await drop(world, { f: ['1', 1], g: ['2', 1] })).toEqual({ ...nothing, problems });
  expect(await drop(world, { g: ['3', 9] })).toEqual({ ...nothing, up: 1, uploaded: 1 });
});

test('what was never dropped before counts by its time, and the older one stays as a version', async () => {
  const world = new World();
  world.putThere('f', { kind: 'file', content: 'old' });
  const ms = world.there.get('f')?.modifiedMs ?? 0;
  expect(await drop(world, { f: ['older', ms - 1] })).toEqual({
    ...nothing,
    problems: ['f newer'],
  });
  expect(await drop(world, { f: ['old', ms - 1] })).toEqual({ ...nothing, unchanged: 1 });
  world.rows.clear();
  expect(await drop(world, { f: ['new', ms + 5_000] })).toEqual({ ...nothing, up: 1, uploaded: 3 });
  expect(world.history).toEqual(['old', 'new']);
});

test('names, kinds and our own folders: the others go on', async () => {
  const world = new World();
  world.putThere('d', { kind: 'folder', content: '' });
  world.putThere('e', { kind: 'file', content: 'x' });
  const files: Record<string, [string, number]> = {
    d: ['1', 1],
    'e/f': ['1', 1],
    [`${'x'.repeat(256)}/f`]: ['1', 1],
    '.syncline-trash/f': ['1', 1],
    g: ['1', 1],
  };
  expect(await drop(world, files)).toEqual({
    ...nothing,
    up: 1,
    uploaded: 1,
    problems: ['d clash', 'e/f clash', `${'x'.repeat(256)}/f name`],
  });
});

test('one folder is dropped, and nothing beside it', () => {
  const file = new File([''], 'f');
  expect(folderOfDrop([{ file, folders: ['a', 'b'] }])).toEqual({
    name: 'a',
    files: new Map([['b/f', file]]),
  });
  expect(
    folderOfDrop([
      { file, folders: ['a'] },
      { file, folders: ['c'] },
    ]),
  ).toBeNull();
  expect(folderOfDrop([{ file, folders: [] }])).toBeNull();
  expect(folderOfDrop([])).toBeNull();
});
