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
      return Promise.resolve({ isBeside: false, isPartial: false });
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
