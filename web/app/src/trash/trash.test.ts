import { ProblemError, type DeletedNode, type Node, type SynclineClient } from '@syncline/api';
import { expect, test } from 'vitest';
import { bringBack, sortDeleted, topOf } from './deleted.ts';
import { Trash } from './trash.svelte.ts';

function gone(path: string, more: Partial<DeletedNode> = {}): DeletedNode {
  return { id: path, path, kind: 'file', seq: 1, ...more } as DeletedNode;
}

const paths = (nodes: DeletedNode[]) => nodes.map(({ path }) => path);
const folder = { kind: 'folder' } as const;

test('what went with a folder is left out, and what went before it or beside it is not', () => {
  const nodes = [
    gone('a/b/deep', { seq: 7 }),
    gone('a', { ...folder, seq: 7 }),
    gone('a/b', { ...folder, seq: 7 }),
    gone('a/earlier', { seq: 3 }),
    gone('ab', { seq: 7 }),
  ];
  expect(paths(topOf(nodes))).toEqual(['a', 'a/earlier', 'ab']);
});

test('where the server does not know when, nothing is taken for a part of something else', () => {
  const nodes = [gone('a', { ...folder, seq: null }), gone('a/b', { seq: null })];
  expect(paths(topOf(nodes))).toEqual(['a', 'a/b']);
});

test('the newest comes first, and what went in one go in the order of its places', () => {
  const nodes = [
    gone('z', { seq: null }),
    gone('b', { seq: 2 }),
    gone('a', { seq: 2 }),
    gone('c', { seq: 9 }),
  ];
  expect(paths(sortDeleted(nodes))).toEqual(['c', 'a', 'b', 'z']);
});

function problem(code: string): ProblemError {
  return new ProblemError({ type: '', title: '', detail: '', status: 409, code });
}

test('a folder comes back before what was in it, and nothing is asked for twice', async () => {
  const asked: unknown[] = [];
  const client = {
    restore: (_: string, node: string) => {
      asked.push({ node });
      return Promise.resolve({ name: node });
    },
  } as unknown as SynclineClient;
  const nodes = [
    gone('a/earlier', { seq: 3 }),
    gone('a/b', { seq: 7 }),
    gone('a', { ...folder, seq: 7 }),
  ];
  const back: Node[] = [];
  await bringBack(client, 'w', nodes, (node) => back.push(node));
  expect(asked).toEqual([{ node: 'a' }, { node: 'a/earlier' }]);
  expect(back.map(({ name }) => name)).toEqual(['a', 'a/earlier']);
});

test('where one cannot come back, it is known what has', async () => {
  let asked = 0;
  const restore = () => (++asked === 2 ? Promise.reject(problem('conflict')) : Promise.resolve({}));
  const back: Node[] = [];
  const nodes = [gone('a'), gone('b'), gone('c')];
  const bringing = bringBack({ restore } as unknown as SynclineClient, 'w', nodes, (node) =>
    back.push(node),
  );
  await expect(bringing).rejects.toMatchObject({ code: 'conflict' });
  expect(back).toHaveLength(1);
});

/** A server with so many deleted nodes, two on a page. */
function serverOf(names: string[]) {
  const state = { names, failure: undefined as Error | undefined, asked: [] as unknown[] };
  const call = (_: string, { query }: { query: { cursor?: string; limit?: number } }) => {
    state.asked.push(query.cursor);
    if (state.failure) return Promise.reject(state.failure);
    const start = Number(query.cursor ?? 0);
    const nodes = state.names.slice(start, start + 2).map((name) => gone(name));
    return Promise.resolve({ nodes, next: start + 2 < state.names.length ? `${start + 2}` : null });
  };
  return { state, client: { call } as unknown as SynclineClient };
}

test('pages follow each other, and what is read anew is as long as what was shown', async () => {
  const { state, client } = serverOf(['a', 'b', 'c', 'd', 'e']);
  const trash = new Trash(client, 'w');
  await trash.refresh();
  expect([paths(trash.list), trash.next]).toEqual([['a', 'b'], '2']);
  await trash.more();
  expect(paths(trash.list)).toEqual(['a', 'b', 'c', 'd']);
  state.names = ['new', ...state.names];
  await trash.refresh();
  expect(paths(trash.list)).toEqual(['new', 'a', 'b', 'c']);
  await trash.more();
  await trash.more();
  expect([paths(trash.list).at(-1), trash.next]).toEqual(['e', null]);
});

test('news while it is being read are read, too', async () => {
  const { state, client } = serverOf(['a']);
  const trash = new Trash(client, 'w');
  const reading = trash.refresh();
  state.names = ['new', 'a'];
  await trash.refresh();
  await reading;
  expect(paths(trash.list)).toEqual(['new', 'a']);
  expect(state.asked).toHaveLength(2);
});

test('what the server refuses is not shown from memory, and what it cannot be asked for is', async () => {
  const { state, client } = serverOf(['a']);
  const trash = new Trash(client, 'w');
  await trash.refresh();
  state.failure = new ProblemError({
    type: '',
    title: '',
    detail: '',
    status: 503,
    code: 'unavailable',
  });
  await trash.refresh();
  expect([paths(trash.list), trash.failure]).toEqual([['a'], state.failure]);
  state.failure = problem('forbidden');
  await trash.refresh();
  expect(paths(trash.list)).toEqual([]);
});
