import { expect, test } from 'vitest';
import type { Engine } from './engine.ts';
import { engineOf, shown, signal, worldOf } from './engine.testing.ts';
import type { Tree } from './ports.ts';
import type { World } from './world.testing.ts';

type SideName = 'here' | 'there';

/** Has each look at a side miss what is said for it, and the later ones nothing; returns how many there were. */
function missAt(engine: Engine, side: SideName, missed: string[]): () => number {
  const { disk, server } = engine.ports;
  const [waiting, looks] = [missed.values(), { count: 0 }];
  const without = async <One>(looked: Promise<Tree<One>>) => {
    looks.count++;
    const tree = await looked;
    tree.found.delete(waiting.next().value ?? '');
    return tree;
  };
  const [scan, list] = [disk.scan.bind(disk), server.list.bind(server)];
  if (side === 'here') disk.scan = (stop) => without(scan(stop));
  else server.list = (stop) => without(list(stop));
  return () => looks.count;
}

/** Has both sides pass over a path, with all that is in it. */
function passOver(engine: Engine, path: string): () => string[] {
  const { disk, server } = engine.ports;
  const looks: string[] = [];
  const without = async <One>(name: string, looked: Promise<Tree<One>>) => {
    looks.push(name);
    const tree = await looked;
    for (const one of tree.found.keys()) {
      if (one === path || one.startsWith(`${path}/`)) tree.found.delete(one);
    }
    tree.skipped.set(path, 'link');
    return tree;
  };
  const [scan, list] = [disk.scan.bind(disk), server.list.bind(server)];
  disk.scan = (stop) => without('scan', scan(stop));
  server.list = (stop) => without('list', list(stop));
  return () => looks;
}

const SAME = { a: 'one', b: 'two 2' };
const sameWorld = (): Promise<World> => worldOf(SAME, SAME, SAME);

test.each<SideName>(['here', 'there'])(
  'what is missing %s for the first time is not taken for deleted because something else was missing before',
  async (side) => {
    const world = await sameWorld();
    const engine = engineOf(world);
    const looks = missAt(engine, side, ['a', 'b']);
    const report = await engine.round({ signal });
    expect(report).toMatchObject({ deletedHere: 0, deletedThere: 0, isStale: false });
    expect(looks()).toBe(3);
    expect([shown(world.here), shown(world.there)]).toEqual([SAME, SAME]);
  },
);

test.each<SideName>(['here', 'there'])(
  'where something else is missing %s each time nothing is deleted for it, and it is looked at again',
  async (side) => {
    const world = await sameWorld();
    const engine = engineOf(world);
    const looks = missAt(engine, side, ['a', 'b', 'a', 'b']);
    const report = await engine.round({ signal });
    expect(report).toMatchObject({ deletedHere: 0, deletedThere: 0, isStale: true });
    expect(looks()).toBe(4);
    expect([shown(world.here), shown(world.there)]).toEqual([SAME, SAME]);
    expect(await engine.round({ signal })).toMatchObject({ isStale: false, problems: [] });
  },
);

test('what is passed over is never found, and is not looked for again each time', async () => {
  const all = { a: '/', 'a/f': 'one', b: 'two' };
  const world = await worldOf(all, all, all);
  const engine = engineOf(world);
  const looks = passOver(engine, 'a');
  await engine.round({ signal });
  expect(looks()).toEqual(['scan', 'list']);
  expect([shown(world.here), shown(world.there)]).toEqual([all, all]);
});

test('a folder that is deleted here stays there for what is passed over in it, and somebody is told', async () => {
  const [all, rest] = [
    { a: '/', 'a/l': 'link', b: 'two' },
    { a: '/', 'a/l': 'link', 'a/f': 'one', b: 'two' },
  ];
  const world = await worldOf({ a: '/', 'a/f': 'one', b: 'two' }, { b: 'two' }, rest);
  const engine = engineOf(world);
  const { server } = engine.ports;
  const list = server.list.bind(server);
  server.list = async (stop) => {
    const tree = await list(stop);
    if (tree.found.delete('a/l')) tree.skipped.set('a/l', 'link');
    return tree;
  };
  const report = await engine.round({ signal });
  expect(report).toMatchObject({ deletedThere: 1, isStale: false });
  expect(report.problems).toEqual([
    { path: 'a/l', reason: 'link' },
    { path: 'a', reason: 'not-empty' },
  ]);
  expect(shown(world.there)).toEqual(all);
  expect(shown(world.here)).toEqual({ b: 'two' });
});

test('a file that is moved between the list of its folder and the look at it is not sent as a new one', async () => {
  const before = { a: 'one', b: 'two' };
  const world = await worldOf(before, before, before);
  const engine = engineOf(world);
  const { disk } = engine.ports;
  const scan = disk.scan.bind(disk);
  let looks = 0;
  disk.scan = async (stop) => {
    if (looks === 0) {
      const file = world.here.get('a');
      if (file) world.here.set('moved', file);
      world.here.delete('a');
    }
    const tree = await scan(stop);
    if (looks++ === 0) tree.skipped.set('a', 'unreadable');
    return tree;
  };
  expect(await engine.round({ signal })).toMatchObject({ moved: 1, up: 0, problems: [] });
  expect(shown(world.there)).toEqual({ moved: 'one', b: 'two' });
});
