import { ProblemError } from '@syncline/api';
import type { SealedWorkspace } from '@syncline/core';
import { expect, test, vi } from 'vitest';

// They belong to the page.
vi.hoisted(() => vi.stubGlobal('addEventListener', () => undefined));
vi.mock('../sign-in/session.svelte.ts', () => ({ session: { account: 'anna' } }));
vi.mock('./unlocked.svelte.ts', () => ({ unlocked: { use: () => undefined } }));

const { SealedUploads } = await import('./uploads.svelte.ts');

const refused = ProblemError.here('over_quota', 'there is no room for it');

/** A workspace in which nothing is yet, and no folder of some name can be made. */
function workspaceWithout(name: string) {
  const made: string[] = [];
  const changes = {
    unfinished: 0,
    makeFolder: (_: string, folder: string) => {
      if (folder === name) return Promise.reject(refused);
      made.push(folder);
      return Promise.resolve({ node: folder });
    },
    put: ({ folder, name }: { folder: string; name: string }) => {
      made.push(`${folder}/${name}`);
      return Promise.resolve({ isBeside: false, isPartial: false, sent: 210 });
    },
  };
  const open = {
    changes,
    catchUp: () => Promise.resolve(),
    list: () => Promise.resolve([]),
    sealNotes: () => Promise.resolve([]),
  };
  return { open: open as unknown as SealedWorkspace, made };
}

test('an empty folder that cannot be made is told, and all else is put', async () => {
  const { open, made } = workspaceWithout('full');
  const uploads = new SealedUploads(open, 'w');
  const adding = uploads.add('top', [
    { file: null, folders: ['full'] },
    { file: new File(['1'], 'one'), folders: [] },
    { file: new File(['2'], 'two'), folders: ['full'] },
    { file: new File(['3'], 'three'), folders: ['side'] },
    { file: null, folders: ['empty'] },
  ]);
  await expect(adding).rejects.toBe(refused);
  await vi.waitFor(() => expect(uploads.running).toBe(0));
  expect(made).toEqual(['empty', 'top/one', 'side', 'side/three']);
  const states = uploads.list.map(({ name, state, failure }) => ({ name, state, failure }));
  expect(states).toEqual([
    { name: 'one', state: 'done', failure: undefined },
    { name: 'two', state: 'failed', failure: refused },
    { name: 'three', state: 'done', failure: undefined },
  ]);
});

test('what was sent for a file that travels in its commit is told', async () => {
  const { open } = workspaceWithout('none');
  const uploads = new SealedUploads(open, 'w');
  await uploads.add('top', [{ file: new File(['twelve bytes'], 'one'), folders: [] }]);
  await vi.waitFor(() => expect(uploads.running).toBe(0));
  expect(uploads.list.map(({ state, done, sent }) => ({ state, done, sent }))).toEqual([
    { state: 'done', done: 12, sent: 210 },
  ]);
});

test('only what has the name of the file itself is a rival of it, and not what has that of a folder above', async () => {
  const { open, made } = workspaceWithout('none');
  const taken = Object.assign(new Error('taken'), { name: 'CoreError', code: 'taken' });
  const there = { kind: 'file', name: 'pics', id: 'p', version: 3 };
  const list = vi.fn(() => Promise.resolve([there]));
  const makeFolder = vi.fn(() => Promise.reject(taken));
  Object.assign(open, { list });
  Object.assign(open.changes, { makeFolder });
  const uploads = new SealedUploads(open, 'w');
  await uploads.add('top', [{ file: new File(['1'], 'a.jpg'), folders: ['pics'] }]);
  await vi.waitFor(() => expect(uploads.running).toBe(0));
  const [blocked] = uploads.list;
  expect(blocked).toMatchObject({ state: 'failed', failure: taken, rival: null });
  expect(made).toEqual([]);

  Object.assign(open.changes, { put: () => Promise.reject(taken) });
  await uploads.add('top', [{ file: new File(['1'], 'pics'), folders: [] }]);
  await vi.waitFor(() => expect(uploads.running).toBe(0));
  expect(uploads.list[1]).toMatchObject({ state: 'clash', rival: { id: 'p', version: 3 } });
});
