import { ProblemError, type Conflict, type Node, type SynclineClient } from '@syncline/api';
import { expect, test } from 'vitest';
import { Conflicts } from './conflicts.svelte.ts';
import { decide, takeBack, type Keep } from './deciding.ts';
import { openConflicts } from './open.svelte.ts';
import type { ConflictsOf } from './source.ts';

const node = (id: string, path: string, version: number): Node =>
  ({ id, path, name: path.split('/').at(-1), version, etag: `"${id}.${version}"` }) as Node;

const CONFLICT = {
  copy: node('c', 'f/a (conflict x)', 2),
  original: node('o', 'f/a', 5),
  original_id: 'o',
  base: 4,
} as Conflict;

type Asked = [string, unknown];

/** A server that notes what it is asked, and finds `there` at every path. */
function serverOf(there: Node | null = null) {
  const asked: Asked[] = [];
  const call = (name: string, { body }: { body?: { node: string } }) => {
    asked.push([name.replace('/workspaces/{workspace}', ''), body]);
    return Promise.resolve(node(body?.node ?? '', 'back', 9));
  };
  const move = (_: string, from: string, to: string, condition: unknown) => {
    asked.push(['move', [from, to, condition]]);
    return Promise.resolve(node('c', to, 9));
  };
  const client = { call, move, node: () => Promise.resolve(there) };
  return { asked, client: client as unknown as SynclineClient };
}

test('a decision names the versions that were seen', async () => {
  const { asked, client } = serverOf();
  await decide(client, 'w', CONFLICT, 'copy');
  await decide(client, 'w', { ...CONFLICT, original: null }, 'both', 'a/ß');
  const copy = { node: 'c', version: 2 };
  expect(asked).toEqual([
    ['POST /resolve', { ...copy, original_version: 5, keep: 'copy', name: null }],
    ['POST /resolve', { ...copy, original_version: null, keep: 'both', name: 'a%2F%C3%9F' }],
  ]);
});

const MARKED: Asked = ['POST /conflicts', { node: 'c', version: 9, original: 'o', base: 4 }];
const REVIVED: Asked = ['POST /restore', { node: 'c' }];

test.each<[Keep, Node, Asked[]]>([
  ['original', node('o', 'f/a', 5), [REVIVED, MARKED]],
  ['copy', node('o', 'f/a', 6), [REVIVED, ['POST /restore', { node: 'o', version: 5 }], MARKED]],
  [
    'both',
    node('c', 'g/named', 3),
    [['move', ['g/named', 'g/a (conflict x)', { ifMatch: '"c.3"' }]], MARKED],
  ],
])('where %s was kept, taking it back makes it a conflict again', async (keep, stands, steps) => {
  const { asked, client } = serverOf(stands);
  await takeBack(client, 'w', CONFLICT, keep, stands);
  expect(asked).toEqual(steps);
});

test('where the file was changed since, taking it back does nothing', async () => {
  for (const there of [null, node('o', 'f/a', 7)]) {
    const { asked, client } = serverOf(there);
    const taking = takeBack(client, 'w', CONFLICT, 'copy', node('o', 'f/a', 6));
    await expect(taking).rejects.toBeInstanceOf(ProblemError);
    expect(asked).toEqual([]);
  }
});

test('the list says how many there are, and asks once who made each version', async () => {
  const read: string[] = [];
  const page = () => Promise.resolve({ conflicts: [CONFLICT], count: 3, next: 'n' });
  const maker = ({ path }: Node) => {
    read.push(path);
    if (path === 'f/a') return Promise.reject(new Error('gone'));
    return Promise.resolve({ device_name: 'x' });
  };
  const source = { address: '#/here', page, maker } as unknown as ConflictsOf;
  const list = new Conflicts(source, 'w');
  await list.refresh();
  await expect.poll(() => list.makers.get('c.2')?.device_name).toBe('x');
  await expect.poll(() => read).toEqual(['f/a (conflict x)', 'f/a']);
  const { workspace, count, address } = openConflicts;
  expect([list.count, workspace, count, address]).toEqual([3, 'w', 3, '#/here']);
  await list.more();
  // What was not known is asked for again, and nothing else.
  await expect.poll(() => read).toEqual(['f/a (conflict x)', 'f/a', 'f/a']);
});

test('the number follows the newest question, and is that of the workspace that is open', async () => {
  const waiting: ((count: number) => void)[] = [];
  const call = () => new Promise((resolve) => waiting.push((count) => resolve({ count })));
  const client = { call } as unknown as SynclineClient;
  const first = openConflicts.look(client, 'one');
  void openConflicts.look(client, 'two');
  expect([openConflicts.workspace, openConflicts.count]).toEqual(['two', 0]);
  waiting[0]?.(7);
  await expect.poll(() => waiting.length).toBe(2);
  expect(openConflicts.count).toBe(0);
  waiting[1]?.(2);
  await first;
  expect(openConflicts.count).toBe(2);
});
