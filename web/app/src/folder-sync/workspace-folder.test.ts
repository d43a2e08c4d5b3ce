import { ProblemError, ROOT, type Node, type SynclineClient } from '@syncline/api';
import type { Core } from '@syncline/core';
import { expect, test, vi } from 'vitest';
import { Changed } from './ports.ts';
import { WorkspaceFolder } from './workspace-folder.ts';

// It belongs to the page, and nothing is sent here.
vi.mock('../transfers/delta.ts', () => ({ sendDelta: () => Promise.resolve(null) }));

const signal = new AbortController().signal;

function folderWith(pages: (path: string) => Node[]): WorkspaceFolder {
  const client = {
    async *folder(_: string, path: string) {
      yield pages(path);
    },
  } as unknown as SynclineClient;
  const core = () => Promise.reject<Core>(new Error('nothing is read'));
  return new WorkspaceFolder(client, core, { workspace: 'w', path: ROOT, node: null });
}

const node = (name: string, kind: Node['kind']) =>
  ({
    name,
    kind,
    path: name,
    id: `id of ${name}`,
    version: 1,
    etag: 'e',
    size: 0,
    modified: null,
    mounted: null,
  }) as unknown as Node;

const gone = () => {
  throw ProblemError.here('not_found', 'there is no such folder');
};

test('a folder that goes away while it is listed is listed again, and one that was never there is not', async () => {
  const inside = folderWith((path) => (path === ROOT ? [node('d', 'folder')] : gone()));
  await expect(inside.list(signal)).rejects.toThrow(Changed);
  await expect(folderWith(gone).list(signal)).rejects.toThrow(ProblemError);
  const whole = folderWith((path) => (path === ROOT ? [node('d', 'folder')] : [node('f', 'file')]));
  expect([...(await whole.list(signal)).found.keys()]).toEqual(['d', 'd/f']);
});
