import { NoConnection } from '@syncline/api';
import { expect, test } from 'vitest';
import { folderOf } from './engine.ts';
import {
  engineOf,
  file,
  folder,
  settle,
  shown,
  signal,
  worldOf,
  type Side,
} from './engine.testing.ts';
import { Dice } from './dice.testing.ts';
import { Cut, ModelServer, World, type Entry } from './world.testing.ts';

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

const NAMES = ['a', 'b', 'c', 'd'];

/** People who edit both sides. Every content is written once. */
class People {
  readonly written: string[] = [];
  /** What somebody replaced or deleted knowingly. */
  readonly superseded = new Set<string>();
  moves = 0;
  #next = 0;

  constructor(
    readonly world: World,
    readonly dice: Dice,
  ) {}

  edit(): void {
    const { world, dice } = this;
    const isHere = dice.hits(2);
    const side: Map<string, Entry> = isHere ? world.here : world.there;
    const folders = [
      '',
      ...[...side].filter(([, { kind }]) => kind === 'folder').map(([path]) => path),
    ];
    const parent = dice.pick(folders) ?? '';
    const name = dice.pick(NAMES) ?? 'a';
    const path = parent === '' ? name : `${parent}/${name}`;
    const put = (entry: Omit<Entry, 'modifiedMs'>) =>
      isHere ? world.putHere(path, entry) : world.putThere(path, entry);
    const found = side.get(path);
    if (dice.hits(5)) return this.#move(isHere, parent, name);
    const [isDeleting, isFolder] = [dice.hits(4), dice.hits(4)];
    if (isDeleting || path.split('/').length > 3) this.#delete(side, path);
    else if (isFolder && !found) put(folder);
    else if (found?.kind !== 'folder') this.#write(found, put);
  }

  /** Gives a file or a folder another place, where nothing is: as file systems and servers do, with all that is in it. */
  #move(isHere: boolean, parent: string, name: string): void {
    const { world, dice } = this;
    const side: Map<string, Entry> = isHere ? world.here : world.there;
    const from = dice.pick([...side.keys()]);
    const to = parent === '' ? name : `${parent}/${name}`;
    if (from === undefined || side.has(to) || `${to}/`.startsWith(`${from}/`)) return;
    for (const [one, entry] of [...side]) {
      if (one !== from && !one.startsWith(`${from}/`)) continue;
      const place = to + one.slice(from.length);
      if (!isHere) world.moveThere(one, place);
      else if (world.here.delete(one)) world.here.set(place, entry);
    }
    this.moves++;
  }

  #write(found: Entry | undefined, put: (entry: Omit<Entry, 'modifiedMs'>) => void): void {
    if (found) this.superseded.add(found.content);
    const content = `${this.dice.hits(3) ? 'long ' : ''}${this.#next++}`;
    this.written.push(content);
    put(file(content));
  }

  #delete(side: Map<string, Entry>, path: string): void {
    for (const [one, { content }] of [...side]) {
      if (one !== path && !one.startsWith(`${path}/`)) continue;
      this.superseded.add(content);
      side.delete(one);
    }
  }
}

/** Settles all, and gives another name to each file there that stands in the way of a folder here, as somebody would. */
async function settleAll(world: World): Promise<void> {
  for (;;) {
    const { problems } = await settle(world);
    let hasClash = false;
    for (let { path } of problems) {
      while (path !== '' && world.there.get(path)?.kind !== 'file') path = folderOf(path);
      const found = world.there.get(path);
      if (!found || world.here.get(path)?.kind !== 'folder') continue;
      hasClash = true;
      world.there.delete(path);
      world.there.set(`${path}!`, found);
    }
    if (!hasClash) return;
  }
}

/** One story: edits, rounds that are cut off, and at last peace. Throws where anything is lost, or both sides differ. */
async function tell(seed: number): Promise<{ cuts: number; moves: number; moved: number }> {
  const [world, dice] = [new World(), new Dice(seed)];
  const people = new People(world, dice);
  let [cuts, moved] = [0, 0];
  let engine = engineOf(world);
  for (let step = 0; step < 12; step++) {
    for (let edits = dice.below(4); edits > 0; edits--) people.edit();
    const cutIn = 5 + dice.below(20);
    const editIn = 4 + dice.below(20);
    const disturb = () => {
      if (dice.hits(editIn)) people.edit();
      if (dice.hits(cutIn)) throw new Cut();
    };
    [world.before, world.after] = [disturb, disturb];
    try {
      moved += (await engine.round({ signal, isConfirmed: true })).moved;
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      cuts++;
      engine = engineOf(world);
    }
    // Events say when the server has news; they may be late.
    if (dice.hits(2)) engine.forgetRemote();
  }
  [world.before, world.after] = [() => undefined, () => undefined];
  await settleAll(world);
  expect(World.show(world.here), `seed ${seed}`).toEqual(World.show(world.there));
  const alive = new Set([...world.here.values()].map(({ content }) => content));
  const kept = new Set([...alive, ...world.trash, ...world.history]);
  for (const content of people.written) {
    const isLost = !alive.has(content) && !people.superseded.has(content);
    expect(isLost, `seed ${seed}: '${content}' is gone, and nobody said so`).toBe(false);
    expect(kept.has(content) || people.superseded.has(content), `seed ${seed}`).toBe(true);
  }
  return { cuts, moves: people.moves, moved };
}

test('whatever both sides do, and wherever it is cut off, nothing is lost and both agree in the end', async () => {
  const all = { cuts: 0, moves: 0, moved: 0 };
  for (let seed = 0; seed < 300; seed++) {
    const told = await tell(seed);
    for (const key of ['cuts', 'moves', 'moved'] as const) all[key] += told[key];
  }
  expect(all.cuts).toBeGreaterThan(1_000);
  expect(all.moves).toBeGreaterThan(800);
  expect(all.moved).toBeGreaterThan(30);
}, 120_000);
