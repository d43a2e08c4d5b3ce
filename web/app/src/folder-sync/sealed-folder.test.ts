import { expect, test } from 'vitest';
import { engineOf, file, folder, shown, signal } from './engine.testing.ts';
import { Locked, RootGone } from './ports.ts';
import { SealedFolder } from './sealed-folder.ts';
import { ModelSealed, ROOT } from './sealed.testing.ts';
import { tellAll } from './story.testing.ts';
import { World } from './world.testing.ts';

function folderOf(world: World, root = ROOT): SealedFolder {
  const { opened } = new ModelSealed(world);
  return new SealedFolder(() => opened, root);
}

test('whatever both sides do, and wherever it is cut off, nothing is lost and both agree in the end', async () => {
  const all = await tellAll(150, (world) => folderOf(world));
  expect(all.cuts).toBeGreaterThan(500);
  expect(all.moved).toBeGreaterThan(15);
}, 120_000);

test('a folder of a workspace is kept, and nothing of what is around it; one that is gone is no empty one', async () => {
  const world = new World();
  world.putThere('outer', folder);
  world.putThere('outer/plan.txt', file('plan'));
  world.putThere('other.txt', file('other'));
  world.putHere('new.txt', file('new'));
  const root = world.there.get('outer')?.node ?? '';
  const engine = engineOf(world, folderOf(world, root));
  await engine.round({ signal });
  expect(shown(world.here)).toEqual({ 'plan.txt': 'plan', 'new.txt': 'new' });
  expect(world.there.get('outer/new.txt')?.content).toBe('new');
  // Wherever it is moved, it is that one.
  for (const path of ['outer', 'outer/plan.txt', 'outer/new.txt']) {
    world.moveThere(path, path.replace('outer', 'moved'));
  }
  world.putThere('moved/plan.txt', file('second'));
  engine.forgetRemote();
  await engine.round({ signal });
  expect(shown(world.here)).toEqual({ 'plan.txt': 'second', 'new.txt': 'new' });
  for (const path of [...world.there.keys()]) world.there.delete(path);
  engine.forgetRemote();
  await expect(engine.round({ signal })).rejects.toBeInstanceOf(RootGone);
  expect(shown(world.here)).toEqual({ 'plan.txt': 'second', 'new.txt': 'new' });
});

test('names that are no text, links and workspaces of their own are passed over with all that is in them', async () => {
  const world = new World();
  world.putThere('shared', folder);
  world.putThere('odd', folder);
  world.putThere('odd/in', file('in'));
  const { opened } = new ModelSealed(world);
  const { all } = opened.listing;
  Object.assign(opened.listing, {
    all: async (root: string) =>
      (await all(root)).map((placed) => ({
        ...placed,
        isText: placed.node.name !== 'odd',
        isMounted: placed.node.name === 'shared',
      })),
  });
  const engine = engineOf(world, new SealedFolder(() => opened, ROOT));
  const report = await engine.round({ signal });
  expect(report.problems).toEqual([
    { path: 'odd', reason: 'name' },
    { path: 'shared', reason: 'mounted' },
  ]);
  expect(shown(world.here)).toEqual({});
});

test('what others put there under the same name at the same moment stays, and each is kept once', async () => {
  const world = new World();
  world.putHere('plan.txt', file('mine'));
  const engine = engineOf(world, folderOf(world));
  world.before = (name) => {
    if (name === 'put') world.putThere('plan.txt', file('theirs'));
    if (name === 'put') world.before = () => undefined;
  };
  const first = await engine.round({ signal });
  expect([first.isStale, first.up]).toEqual([true, 0]);
  await engine.round({ signal });
  const both = { 'plan.txt': 'theirs', 'plan (conflict browser).txt': 'mine' };
  expect(shown(world.here)).toEqual(both);
  expect(shown(world.there)).toEqual(both);
  expect(world.marks).toEqual(['plan (conflict browser).txt beside n0.0']);
});

test('what comes before the folder that it is in is not taken for something at the root, and nothing is deleted for it', async () => {
  const world = new World();
  world.putThere('outer', folder);
  world.putThere('outer/plan.txt', file('plan'));
  const { opened } = new ModelSealed(world);
  const engine = engineOf(world, new SealedFolder(() => opened, ROOT));
  await engine.round({ signal });
  const { all } = opened.listing;
  Object.assign(opened.listing, { all: async (root: string) => (await all(root)).reverse() });
  engine.forgetRemote();
  await expect(engine.round({ signal })).rejects.toThrow('a folder came after what is in it');
  expect(shown(world.here)).toEqual({ outer: '/', 'outer/plan.txt': 'plan' });
});

test('a locked workspace ends the round, and nothing here is touched for it', async () => {
  const world = new World();
  world.putHere('plan.txt', file('mine'));
  world.putThere('other.txt', file('theirs'));
  const { opened } = new ModelSealed(world);
  let isOpen = true;
  const engine = engineOf(world, new SealedFolder(() => (isOpen ? opened : undefined), ROOT));
  world.after = (name) => void (isOpen &&= name !== 'list');
  await expect(engine.round({ signal })).rejects.toBeInstanceOf(Locked);
  expect([shown(world.here), shown(world.there)]).toEqual([
    { 'plan.txt': 'mine' },
    { 'other.txt': 'theirs' },
  ]);
  [isOpen, world.after] = [true, () => undefined];
  await engine.round({ signal });
  expect(Object.keys(shown(world.here)).sort()).toEqual(['other.txt', 'plan.txt']);
});
