import { NoConnection } from '@syncline/api';
import { expect, test } from 'vitest';
import { engineOf, file, settle, shown, signal, worldOf, type Side } from './engine.testing.ts';
import { ModelServer } from './model-server.testing.ts';
import { tellAll } from './story.testing.ts';

test('what is moved while the server is listed, folder by folder, is not taken for deleted', async () => {
  const world = await worldOf({ a: 'one' }, { a: 'one' }, { a: 'one' });
  const server = new ModelServer(world);
  const engine = engineOf(world, server);
  const list = server.list.bind(server);
  server.list = async () => {
    server.list = list;
    const [listed, entry] = [await list(), world.there.get('a')];
    // It was not where it is now when that was listed, and is not where it was any more.
    listed.found.delete('a');
    world.there.delete('a');
    if (entry) world.there.set('b', entry);
    engine.forgetRemote();
    return listed;
  };
  const report = await engine.round({ signal });
  expect(report).toMatchObject({ moved: 1, deletedHere: 0, down: 0 });
  expect(shown(world.here)).toEqual({ b: 'one' });
});

test('what is moved while the folder is looked at is not taken for deleted', async () => {
  const world = await worldOf({ a: 'one' }, { b: 'one' }, { a: 'one' });
  const engine = engineOf(world);
  const { disk } = engine.ports;
  const scan = disk.scan.bind(disk);
  disk.scan = async (signal) => {
    disk.scan = scan;
    const scanned = await scan(signal);
    // It came to its new place after that was looked at, and had gone from the old one before.
    scanned.found.delete('b');
    return scanned;
  };
  const report = await engine.round({ signal });
  expect(report).toMatchObject({ moved: 1, deletedThere: 0, up: 0 });
  expect(shown(world.there)).toEqual({ b: 'one' });
});

test('a file that is read right after its last change is remembered when it is older, once', async () => {
  const world = await worldOf({ a: 'one' }, { a: 'one' }, { a: 'one' });
  world.here.set('a', { ...file('one'), modifiedMs: world.nowMs });
  let writes = 0;
  world.before = (name) => void (writes += Number(name === 'set'));
  const settled = async () => {
    for (let round = 0; round < 3; round++) await engineOf(world).round({ signal });
    return writes;
  };
  expect(await settled()).toBe(0);
  world.tick();
  expect(await settled()).toBe(1);
});

test('a server that has news all the time is listed anew in the next round', async () => {
  const world = await worldOf({ a: 'one' }, { a: 'one' }, { a: 'one' });
  const server = new ModelServer(world);
  const engine = engineOf(world, server);
  const list = server.list.bind(server);
  server.list = async () => {
    const listed = await list();
    engine.forgetRemote();
    return listed;
  };
  await engine.round({ signal });
  server.list = list;
  world.putThere('b', file('two'));
  await engine.round({ signal });
  expect(shown(world.here)).toEqual({ a: 'one', b: 'two' });
});

// The named cases of crates/sync/src/plan/tests/examples.rs, as far as they need no identity of a moved file.
test.each<[string, Side, Side, Side, Side]>([
  ['new here', {}, { a: '/', 'a/f': '1' }, {}, { a: '/', 'a/f': '1' }],
  ['new there', {}, {}, { a: '/', 'a/f': '1' }, { a: '/', 'a/f': '1' }],
  [
    'file replaced by directory here',
    { a: '1' },
    { a: '/', 'a/f': '1' },
    { a: '1' },
    { a: '/', 'a/f': '1' },
  ],
  [
    'file replaced by directory there',
    { a: '1' },
    { a: '1' },
    { a: '/', 'a/f': '1' },
    { a: '/', 'a/f': '1' },
  ],
  [
    'directory replaced by file here',
    { a: '/', 'a/f': '1' },
    { a: '2' },
    { a: '/', 'a/f': '1' },
    { a: '2' },
  ],
  [
    'directory replaced by file there',
    { a: '/', 'a/f': '1' },
    { a: '/', 'a/f': '1' },
    { a: '2' },
    { a: '2' },
  ],
  ['edit wins against deletion there', { a: '1' }, { a: '2' }, {}, { a: '2' }],
  ['edit wins against deletion here', { a: '1' }, {}, { a: '2' }, { a: '2' }],
  [
    'both edits are kept',
    { 'a.txt': '1' },
    { 'a.txt': '2' },
    { 'a.txt': '3' },
    { 'a.txt': '3', 'a (conflict browser).txt': '2' },
  ],
  ['equal edits are no conflict', { a: '1' }, { a: '2' }, { a: '2' }, { a: '2' }],
  ['what both delete is gone', { a: '/', 'a/f': '1' }, {}, {}, {}],
  [
    'same new name on both sides',
    {},
    { 'a.txt': '1' },
    { 'a.txt': '2' },
    { 'a.txt': '2', 'a (conflict browser).txt': '1' },
  ],
  ['same new file on both sides', {}, { a: '1' }, { a: '1' }, { a: '1' }],
  [
    'same new directory',
    {},
    { a: '/', 'a/h': '1' },
    { a: '/', 'a/t': '2' },
    { a: '/', 'a/h': '1', 'a/t': '2' },
  ],
  [
    'a new file and a new directory there',
    {},
    { a: '1' },
    { a: '/', 'a/f': '2' },
    { a: '/', 'a/f': '2', 'a (conflict browser)': '1' },
  ],
  [
    'addition here wins against deletion of its directory',
    { a: '/', 'a/f': '1' },
    { a: '/', 'a/f': '1', 'a/g': '2' },
    {},
    { a: '/', 'a/g': '2' },
  ],
  [
    'addition there wins against deletion of its directory',
    { a: '/', 'a/f': '1' },
    {},
    { a: '/', 'a/f': '1', 'a/g': '2' },
    { a: '/', 'a/g': '2' },
  ],
  ['a file that was moved', { a: '1' }, { b: '1' }, { a: '1' }, { b: '1' }],
  ['a move wins against a deletion', { a: '1' }, { b: '1' }, {}, { b: '1' }],
  [
    'a directory is deleted with all that is in it',
    { a: '/', 'a/b': '/', 'a/b/f': '1' },
    {},
    { a: '/', 'a/b': '/', 'a/b/f': '1' },
    {},
  ],
])('%s', async (_, synced, here, there, expected) => {
  const world = await worldOf(synced, here, there);
  await settle(world);
  expect(shown(world.here)).toEqual(expected);
  expect(shown(world.there)).toEqual(expected);
});

test('a new folder here and a new file of its name there stay, and somebody is told', async () => {
  const world = await worldOf({}, { a: '/', 'a/f': '1', b: '3' }, { a: '2' });
  const report = await engineOf(world).round({ signal });
  expect(report.problems).toEqual([
    { path: 'a', reason: 'clash' },
    { path: 'a/f', reason: 'clash' },
  ]);
  expect(shown(world.here)).toEqual({ a: '/', 'a/f': '1', b: '3' });
  expect(shown(world.there)).toEqual({ a: '2', b: '3' });
});

test('what is removed here can be found in the trash, and a folder that is empty at once is asked about', async () => {
  const world = await worldOf({ a: '1', b: '2' }, { a: '1', b: '2' }, { a: '1' });
  await settle(world);
  expect(world.trash).toEqual(['2']);
  world.here.clear();
  world.putThere('c', file('3'));
  await settle(await worldOf({}, {}, {}));
  const two = await worldOf({ a: '1', b: '2' }, {}, { a: '1', b: '2' });
  const report = await engineOf(two).round({ signal });
  expect(report.asks).toEqual({ absent: 2, all: 2 });
  expect(shown(two.there)).toEqual({ a: '1', b: '2' });
});

test('a second round has nothing to do and asks for nothing', async () => {
  const world = await worldOf(
    { a: '/', 'a/f': '1' },
    { a: '/', 'a/f': '1' },
    { a: '/', 'a/f': '1' },
  );
  world.tick();
  const engine = engineOf(world);
  await engine.round({ signal });
  const calls: string[] = [];
  world.before = (name) => void calls.push(name);
  const report = await engine.round({ signal });
  expect(calls).toEqual(['scan', 'rows']);
  expect([report.up, report.down]).toEqual([0, 0]);
});

test('a file that cannot be sent is named, and the others go on; without a connection nothing does', async () => {
  const world = await worldOf({}, { a: '1', b: '2', c: '3' }, {});
  const engine = engineOf(world);
  const { put } = ModelServer.prototype;
  const server = engine.ports.server;
  server.put = (path, content, over) => {
    if (path === 'b') return Promise.reject(new TypeError('not readable'));
    return put.call(server as ModelServer, path, content, over);
  };
  const report = await engine.round({ signal });
  expect(report.problems).toMatchObject([{ path: 'b', reason: 'failed' }]);
  expect(shown(world.there)).toEqual({ a: '1', c: '3' });
  server.put = () => Promise.reject(new NoConnection('x'));
  await expect(engine.round({ signal })).rejects.toThrow(NoConnection);
});

test('a file that changes right after it was read, and looks the same, is read again', async () => {
  const world = await worldOf({}, { a: '1' }, {});
  const engine = engineOf(world);
  const modifiedMs = world.nowMs;
  world.here.set('a', { ...file('1'), modifiedMs });
  await engine.round({ signal });
  world.here.set('a', { ...file('2'), modifiedMs });
  world.tick();
  await engine.round({ signal });
  expect(shown(world.there)).toEqual({ a: '2' });
});

test('a file that is written to while it is sent is sent again, and is no conflict', async () => {
  const world = await worldOf({ a: '1' }, { a: '2' }, { a: '1' });
  const engine = engineOf(world);
  world.after = (name) => {
    if (name !== 'put') return;
    world.after = () => undefined;
    world.putHere('a', file('3'));
  };
  const report = await engine.round({ signal });
  expect(report.isStale).toBe(true);
  const last = await engine.round({ signal });
  expect(last.conflicts).toEqual([]);
  expect(shown(world.there)).toEqual({ a: '3' });
  expect(world.history).toEqual(['1', '2', '3']);
});

test('whatever both sides do, and wherever it is cut off, nothing is lost and both agree in the end', async () => {
  const all = await tellAll(300);
  expect(all.cuts).toBeGreaterThan(1_000);
  expect(all.setBacks).toBeGreaterThan(100);
  expect(all.moves).toBeGreaterThan(700);
  expect(all.moved).toBeGreaterThan(20);
}, 120_000);

test('a file that was replaced by another one of its length and time is not lost to a new version', async () => {
  const world = await worldOf({ a: 'one' }, { a: 'one' }, { a: 'one' });
  const found = world.here.get('a');
  world.tick();
  await engineOf(world).round({ signal });
  if (found) world.here.set('a', { ...found, content: 'two' });
  world.putThere('a', file('three'));
  await settle(world);
  expect(Object.values(shown(world.here)).sort()).toEqual(['three', 'two']);
  expect(shown(world.there)).toEqual(shown(world.here));
});

test('another disk in the place of the folder deletes nothing before somebody has said so', async () => {
  const both = { a: 'one', b: 'two', c: 'three', d: 'four', e: 'five' };
  const world = await worldOf(both, both, both);
  world.here.clear();
  world.putHere('e', file('of another disk'));
  const engine = engineOf(world);
  expect((await engine.round({ signal })).asks).toEqual({ absent: 4, all: 5 });
  expect(shown(world.there)).toEqual(both);
  // By the time that it is answered even that is gone.
  world.here.clear();
  expect((await engine.round({ signal, confirmed: 4 })).asks).toEqual({ absent: 5, all: 5 });
  expect(shown(world.there)).toEqual(both);
  expect(await engine.round({ signal, confirmed: 5 })).toMatchObject({ deletedThere: 5 });
});

test('two copies that are kept at once and would have the same name both stay', async () => {
  const names = { 'x.txt': '1', 'x (conflict laptop).txt': '2' };
  const [here, there] = [
    { 'x.txt': 'a', 'x (conflict laptop).txt': 'b' },
    { 'x.txt': 'long 1', 'x (conflict laptop).txt': 'long 2' },
  ];
  const world = await worldOf(names, here, there);
  const engine = engineOf(world);
  // As a system that puts one file over another, some time after it was looked whether that is there.
  engine.ports.disk.move = async (path, to) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const found = world.here.get(path);
    world.here.delete(path);
    if (found) world.here.set(to, found);
  };
  await engine.round({ signal });
  const texts = Object.values(shown(world.here));
  expect(texts.toSorted()).toEqual(['a', 'b', 'long 1', 'long 2']);
});

test('a file that is back when its deletion is to go to the server is not deleted there', async () => {
  const both = { gone: 'one', other: 'one' };
  const world = await worldOf(both, { other: 'two' }, both);
  // Deletions come last, and what goes up before them takes its time.
  world.before = (name) => {
    if (name === 'put') world.here.set('gone', { ...file('back'), modifiedMs: world.tick() });
  };
  const report = await engineOf(world).round({ signal, confirmed: Infinity });
  expect(report).toMatchObject({ up: 1, deletedThere: 0, isStale: true, changed: ['gone'] });
  world.before = () => undefined;
  await settle(world);
  expect(shown(world.there)).toEqual({ gone: 'back', other: 'two' });
  expect(world.there.get('gone')?.version).toBe(2);
});

test('what has another name in large and small letters is not taken for a file that is back', async () => {
  const world = await worldOf({ 'A.txt': 'one' }, { 'a.txt': 'two' }, { 'A.txt': 'one' });
  const engine = engineOf(world);
  const { disk } = engine.ports;
  const find = disk.file.bind(disk);
  // To the system both are one.
  const same = (path: string) => (one: string) => one.toLowerCase() === path.toLowerCase();
  disk.file = (path) => find([...world.here.keys()].find(same(path)) ?? path);
  const report = await engine.round({ signal, confirmed: Infinity });
  expect(report).toMatchObject({ up: 1, deletedThere: 1, isStale: false });
  expect(shown(world.there)).toEqual({ 'a.txt': 'two' });
});
