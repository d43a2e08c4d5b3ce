import { ProblemError, type Node, type SynclineClient } from '@syncline/api';
import { expect, test } from 'vitest';
import { copyAll, fits, moveAll } from './relocating.ts';

const node = (path: string) => ({ path, name: path.split('/').at(-1), etag: `"${path}"` }) as Node;
const refused = (code: string) =>
  new ProblemError({ type: '', title: '', detail: '', status: 412, code });

test('nothing goes into itself or below', () => {
  expect(fits([node('a'), node('b')], 'c')).toBe(true);
  expect(fits([node('a')], '')).toBe(true);
  expect(fits([node('a')], 'ab')).toBe(true);
  for (const folder of ['a', 'a/b', 'a/b/c'])
    expect(fits([node('b'), node('a')], folder)).toBe(false);
});

test('where one node cannot be moved, those before it are moved back', async () => {
  const asked: string[] = [];
  const move = (_: string, from: string, to: string, condition: { ifMatch: string }) => {
    asked.push(`${from} > ${to}, if ${condition.ifMatch}`);
    return from === 'b' ? Promise.reject(refused('taken')) : Promise.resolve(node(to));
  };
  const client = { move } as unknown as SynclineClient;
  await expect(moveAll(client, 'w', [node('a'), node('b')], 'in')).rejects.toThrow();
  // Also back, by what it is and not by where it lies.
  expect(asked).toEqual(['a > in/a, if "a"', 'b > in/b, if "b"', 'in/a > a, if "in/a"']);
});

test('a copy beside something of its name has another one, and a refusal is told', async () => {
  const taken = ['in/a', 'in/a%20%282%29'];
  const client = {
    node: (_: string, path: string) => Promise.resolve(taken.includes(path) ? node(path) : null),
    call: (_: string, { body }: { body: { from: string; to: string } }) =>
      body.from === 'full' ? Promise.reject(refused('over_quota')) : Promise.resolve(node(body.to)),
  } as unknown as SynclineClient;
  const copies = await copyAll(client, 'w', [node('a'), node('b')], 'in');
  expect(copies.map(({ path }) => path)).toEqual(['in/a%20%283%29', 'in/b']);
  await expect(copyAll(client, 'w', [node('full')], 'in')).rejects.toThrow();
});

test('a name that is no text stays what it is', async () => {
  const latin = { ...node('old/caf%E9.txt'), name: 'caf\ufffd.txt' };
  const asked: string[] = [];
  const client = {
    node: () => Promise.resolve(null),
    move: (_: string, from: string, to: string) => {
      asked.push(`${from} > ${to}`);
      return Promise.resolve(node(to));
    },
    call: (_: string, { body }: { body: { to: string } }) => Promise.resolve(node(body.to)),
  } as unknown as SynclineClient;
  await moveAll(client, 'w', [latin], 'in');
  await moveAll(client, 'w', [latin], '');
  expect(asked).toEqual(['old/caf%E9.txt > in/caf%E9.txt', 'old/caf%E9.txt > caf%E9.txt']);
  expect((await copyAll(client, 'w', [latin], 'in'))[0]?.path).toBe('in/caf%E9.txt');
});
