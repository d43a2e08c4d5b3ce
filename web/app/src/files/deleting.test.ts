import { ProblemError, type Node, type SynclineClient } from '@syncline/api';
import { expect, test } from 'vitest';
import { remember, restoreAll, UNDO_MAX } from './deleting.ts';

const node = (id: string, kind: 'file' | 'folder' = 'file') => ({ id, kind, path: id }) as Node;

function clientOf(
  inside: Record<string, Node[]>,
  answer: (id: string) => string | null = () => null,
) {
  const asked: unknown[] = [];
  const client = {
    async *folder(_: string, path: string) {
      yield inside[path] ?? [];
    },
    restore(...asking: [string, string, number?]) {
      asked.push(asking);
      const code = answer(asking[1]);
      return code === null ? Promise.resolve() : Promise.reject(ProblemError.here(code, asking[1]));
    },
  };
  return { client: client as unknown as SynclineClient, asked };
}

test('what was deleted is brought back as it was when it was deleted, a folder before what was in it', async () => {
  const { client, asked } = clientOf({ d: [node('x'), node('e', 'folder')], e: [node('y')] });
  const remembered = await remember(client, 'w', [node('d', 'folder'), node('f')]);
  expect(remembered).toEqual(['d', 'f', 'x', 'e', 'y']);
  await restoreAll(client, 'w', remembered ?? []);
  // No version is named: one that somebody else has made or brought back since is not undone with the deletion.
  expect(asked).toEqual(['d', 'f', 'x', 'e', 'y'].map((id) => ['w', id]));
});

test('what is there again is left as it is, and what cannot come back is told', async () => {
  const back = clientOf({}, (id) => (id === 'x' ? 'taken' : null));
  await restoreAll(back.client, 'w', ['d', 'x', 'y']);
  expect(back.asked).toHaveLength(3);
  const full = clientOf({}, (id) => (id === 'd' ? 'over_quota' : null));
  const all = restoreAll(full.client, 'w', ['d', 'x']);
  await expect(all).rejects.toMatchObject({ code: 'over_quota' });
  expect(full.asked).toHaveLength(2);
});

test('too much is not remembered', async () => {
  const many = Array.from({ length: UNDO_MAX }, (_, at) => node(`n${at}`));
  const { client } = clientOf({ d: many });
  expect(await remember(client, 'w', many)).toHaveLength(UNDO_MAX);
  expect(await remember(client, 'w', [node('d', 'folder')])).toBeNull();
});
