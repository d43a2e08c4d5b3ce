import { NoConnection } from '@syncline/api';
import { expect, test } from 'vitest';
import { Engine } from './engine.ts';
import { ModelRows, ModelServer } from './model-server.testing.ts';
import { ModelDisk, World } from './world.testing.ts';

const { signal } = new AbortController();

function engineOf(world: World, server = new ModelServer(world)): Engine {
  return new Engine({
    disk: new ModelDisk(world),
    server,
    rows: new ModelRows(world),
    digest: async (file) => `content ${await file.text()}`,
    now: () => world.nowMs,
    label: 'conflict browser',
  });
}

const file = (content: string) => ({ kind: 'file', content }) as const;

/** A file that both sides have changed since they agreed. */
async function quarrel(): Promise<World> {
  const world = new World();
  world.putThere('f.txt', file('1'));
  await engineOf(world).round({ signal });
  world.putHere('f.txt', file('mine'));
  world.putThere('f.txt', file('theirs'));
  return world;
}

const COPY = 'f (conflict browser).txt';

/** Until both sides agree, and nothing more is asked for. */
async function settle(world: World): Promise<void> {
  for (let round = 0; round < 4; round++) await engineOf(world).round({ signal });
  const calls: string[] = [];
  world.before = (name) => void calls.push(name);
  await engineOf(world).round({ signal });
  expect(calls).toEqual(['scan', 'seen', 'head', 'rows', 'list', 'seen', 'head']);
  expect([...world.there].map(([path, { content }]) => [path, content]).sort()).toEqual([
    [COPY, 'mine'],
    ['f.txt', 'theirs'],
  ]);
}

test('a copy is marked, beside the version from which it was made', async () => {
  const world = await quarrel();
  await settle(world);
  expect(world.marks).toEqual([`${COPY} beside n0.1`]);
});

test('where the round broke off before it was sent, the copy is known by its name', async () => {
  const world = await quarrel();
  const server = new ModelServer(world);
  server.put = () => Promise.reject(new NoConnection('x'));
  await expect(engineOf(world, server).round({ signal })).rejects.toThrow(NoConnection);
  await settle(world);
  expect(world.marks).toEqual([`${COPY} beside n0.0`]);
});

test('a server that does not mark it has the copy all the same', async () => {
  const world = await quarrel();
  const server = new ModelServer(world);
  server.mark = () => Promise.reject(new TypeError('what is that'));
  await engineOf(world, server).round({ signal });
  await settle(world);
  expect(world.marks).toEqual([]);
});
