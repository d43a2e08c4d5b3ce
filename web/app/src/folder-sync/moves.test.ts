import { expect, test } from 'vitest';
import type { Report } from './report.ts';
import { engineOf, file, folder, settle, shown, signal, worldOf } from './engine.testing.ts';
import { ModelServer } from './model-server.testing.ts';
import type { World } from './world.testing.ts';

/** Runs a round, and returns which calls there were. */
async function callsOf(world: World): Promise<{ calls: string[]; report: Report }> {
  const calls: string[] = [];
  world.before = (name) => void calls.push(name);
  const report = await engineOf(world).round({ signal });
  world.before = () => undefined;
  return { calls, report };
}

test('a file that is moved here is the same there: it keeps its node, and is not sent', async () => {
  const world = await worldOf(
    { a: '/', 'a/f': 'one', 'a/g': 'two' },
    { b: '/', 'b/f': 'one', 'b/h': 'two' },
    { a: '/', 'a/f': 'one', 'a/g': 'two' },
  );
  const before = ['a/f', 'a/g'].map((path) => world.there.get(path)?.node);
  const { calls, report } = await callsOf(world);
  expect([report.moved, report.up]).toEqual([2, 0]);
  expect(calls).not.toContain('put');
  expect(['b/f', 'b/h'].map((path) => world.there.get(path)?.node)).toEqual(before);
  expect(shown(world.there)).toEqual({ b: '/', 'b/f': 'one', 'b/h': 'two' });
  const { report: next } = await callsOf(world);
  expect([next.moved, next.up, next.down, next.problems]).toEqual([0, 0, 0, []]);
});

test('a file that is moved there is moved here, and does not come again', async () => {
  const world = await worldOf(
    { a: '/', 'a/f': 'one' },
    { a: '/', 'a/f': 'one' },
    { a: '/', 'a/f': 'one' },
  );
  world.putThere('b', folder);
  world.moveThere('a/f', 'b/g');
  world.tick();
  const { calls, report } = await callsOf(world);
  expect([report.moved, report.down, report.deletedHere]).toEqual([1, 0, 0]);
  expect(calls).not.toContain('get');
  expect(shown(world.here)).toEqual({ a: '/', b: '/', 'b/g': 'one' });
  expect(world.trash).toEqual([]);
});

test('what may be two files, is empty, or was edited on its way is no move, and nothing of it is lost', async () => {
  const all = { a: 'one', e: '', f: 'two', g: 'six' };
  const world = await worldOf(all, all, all);
  await settle(world);
  world.here.delete('a');
  for (const path of ['b', 'c']) world.putHere(path, file('one'));
  world.here.delete('e');
  world.putHere('d', file(''));
  world.moveThere('f', 'm');
  world.putThere('m', file('2wo'));
  world.moveThere('g', 'n');
  world.putHere('g', file('7ix'));
  const report = await engineOf(world).round({ signal });
  expect(report.moved).toBe(0);
  await settle(world);
  const expected = { b: 'one', c: 'one', d: '', g: '7ix', m: '2wo', n: 'six' };
  expect(shown(world.here)).toEqual(expected);
  expect(shown(world.there)).toEqual(expected);
});

test('a large folder with another name is not asked about', async () => {
  const files = (name: string) =>
    Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`${name}/${at}`, `text ${at}`]));
  const [old, now] = [
    { a: '/', ...files('a') },
    { b: '/', ...files('b') },
  ];
  const world = await worldOf(old, now, old);
  const { report } = await callsOf(world);
  expect(report.asks).toBeNull();
  expect(report.moved).toBe(80);
  expect(shown(world.there)).toEqual(now);
});

test('what is moved while the folder is looked at, and seen at both places, is not sent', async () => {
  const world = await worldOf({ a: 'one' }, { b: 'one' }, { a: 'one' });
  const engine = engineOf(world);
  const { disk } = engine.ports;
  const scan = disk.scan.bind(disk);
  disk.scan = async (signal) => {
    disk.scan = scan;
    const scanned = await scan(signal);
    const found = scanned.found.get('b');
    if (found) scanned.found.set('a', found);
    return scanned;
  };
  const report = await engine.round({ signal });
  expect(report).toMatchObject({ moved: 1, deletedThere: 0, up: 0 });
  expect(shown(world.there)).toEqual({ b: 'one' });
});

test('what is moved while the server is listed, and told of too late, is not taken for deleted', async () => {
  const world = await worldOf({ a: 'one' }, { a: 'one' }, { a: 'one' });
  const server = new ModelServer(world);
  const list = server.list.bind(server);
  server.list = async () => {
    server.list = list;
    const listed = await list();
    listed.found.delete('a');
    world.moveThere('a', 'b');
    return listed;
  };
  const report = await engineOf(world, server).round({ signal });
  expect(report).toMatchObject({ moved: 1, deletedHere: 0, down: 0 });
  expect(world.trash).toEqual([]);
  expect(shown(world.here)).toEqual({ b: 'one' });
});
