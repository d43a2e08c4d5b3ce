import { NoConnection } from '@syncline/api';
import { expect, test } from 'vitest';
import { engineOf, file, settle, shown, signal, worldOf, type Side } from './engine.testing.ts';
import { Changed } from './ports.ts';
import type { World } from './world.testing.ts';

const texts = (side: Side) => Object.values(side).sort();

/** Two sides that are equal, and how the server is set back to before the folder changed. */
async function changedSinceBackup(): Promise<{ world: World; setBack: () => void }> {
  const world = await worldOf({ f: '1', gone: 'x' }, { f: '1', gone: 'x' }, { f: '1', gone: 'x' });
  const setBack = world.backUp();
  world.putHere('f', file('2'));
  world.putHere('new', file('n'));
  world.here.delete('gone');
  await settle(world);
  expect(shown(world.there)).toEqual({ f: '2', new: 'n' });
  return { world, setBack };
}

test('what a server has lost that was set back stays in the folder, and goes up again', async () => {
  const { world, setBack } = await changedSinceBackup();
  const trash = [...world.trash];
  setBack();
  const report = await engineOf(world).round({ signal });
  expect(report.isSetBack).toBe(true);
  await settle(world);
  expect(world.trash).toEqual(trash);
  expect(shown(world.here)).toEqual(shown(world.there));
  // What was deleted since is there again: nobody can tell.
  expect(texts(shown(world.here))).toEqual(['1', '2', 'n', 'x']);
  expect((await engineOf(world).round({ signal })).isSetBack).toBe(false);
});

test('a version under the number of one that was lost is not taken for that', async () => {
  const { world, setBack } = await changedSinceBackup();
  setBack();
  world.putThere('f', file('3'));
  world.putThere('new', file('m'));
  world.there.delete('gone');
  world.grow();
  const { f } = Object.fromEntries(world.rows);
  expect(world.there.get('f')).toMatchObject({ node: f?.node, version: f?.version });
  await settle(world);
  expect(shown(world.here)).toEqual(shown(world.there));
  expect(texts(shown(world.here))).toEqual(['2', '3', 'm', 'n']);
});

test('it is noticed behind a log that is longer by now, and only then', async () => {
  const { world, setBack } = await changedSinceBackup();
  for (let more = 0; more < 5; more++) world.putThere('other', file(`${more}`));
  expect(await engineOf(world).round({ signal })).toMatchObject({ isSetBack: false, down: 1 });
  setBack();
  for (let more = 0; more < 20; more++) world.putThere('other', file(`again ${more}`));
  expect((await engineOf(world).round({ signal })).isSetBack).toBe(true);
});

test('a server that is set back while a round goes on is noticed in the next one', async () => {
  const world = await worldOf({ f: '1' }, { f: '1' }, { f: '1' });
  const setBack = world.backUp();
  world.putHere('lost', file('x'));
  await settle(world);
  const engine = engineOf(world);
  await engine.round({ signal });
  world.putHere('new', file('n'));
  // The server is not listed for that, and is another one when it takes it.
  world.before = (name) => void (name === 'put' && setBack());
  expect(await engine.round({ signal })).toMatchObject({ isStale: true });
  world.before = () => undefined;
  engine.forgetRemote();
  expect(await engine.round({ signal })).toMatchObject({ isSetBack: true, up: 1 });
  expect(shown(world.there)).toEqual({ f: '1', lost: 'x', new: 'n' });
  expect(world.trash).toEqual([]);
});

test('that it was set back is told also where the round breaks off', async () => {
  const { world, setBack } = await changedSinceBackup();
  const engine = engineOf(world);
  await engine.round({ signal });
  setBack();
  engine.forgetRemote();
  world.before = (name) => {
    if (name === 'list') throw new NoConnection('away');
  };
  await expect(engine.round({ signal })).rejects.toThrow(NoConnection);
  world.before = () => undefined;
  expect((await engine.round({ signal })).isSetBack).toBe(true);
  expect((await engine.round({ signal })).isSetBack).toBe(false);
});

test('a round that takes long ends where the server was set back meanwhile', async () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`f${at}`, `${at}`]));
  const world = await worldOf({ a: '1' }, { a: '1', ...many }, { a: '1' });
  const setBack = world.backUp();
  world.putThere('b', file('2'));
  await engineOf(world).round({ signal });
  for (const name of Object.keys(many)) world.putHere(name, file(`${name} again`));
  let puts = 0;
  world.before = (name) => {
    world.nowMs += 20_000;
    if (name === 'put' && ++puts === 3) setBack();
  };
  await expect(engineOf(world).round({ signal })).rejects.toThrow(Changed);
  expect(puts).toBeLessThan(10);
  world.before = () => undefined;
  await settle(world);
  expect(shown(world.here)).toEqual(shown(world.there));
  expect(world.trash).toEqual([]);
});

test('what went up alone is behind what is remembered of the history, too', async () => {
  const world = await worldOf({ f: '1' }, { f: '1' }, { f: '1' });
  const engine = engineOf(world);
  await engine.round({ signal });
  const setBack = world.backUp();
  world.putHere('new', file('n'));
  // The server is not listed for that.
  await engine.round({ signal });
  setBack();
  await settle(world);
  expect(shown(world.there)).toEqual({ f: '1', new: 'n' });
  expect(world.trash).toEqual([]);
});
