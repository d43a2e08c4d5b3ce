import type { Listening, SynclineClient } from '@syncline/api';
import type { SealedNode, SealedWorkspace } from '@syncline/core';
import { expect, test, vi } from 'vitest';
import { SealedTrash } from './trash.svelte.ts';
import { SealedFolder } from './view.svelte.ts';

const heard = vi.hoisted(() => ({ onEvent: (() => undefined) as Listening['onEvent'] }));
vi.mock('@syncline/api', async (original) => ({
  ...(await original<typeof import('@syncline/api')>()),
  listen: (...[, , { onEvent }]: [SynclineClient, string, Listening, AbortSignal]) => {
    heard.onEvent = onEvent;
    return new Promise(() => undefined);
  },
}));

const tell = (seq: number) => heard.onEvent({ seq } as Parameters<Listening['onEvent']>[0]);
const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

/** A workspace whose log has more entries as they are told; what is asked of its worker waits for `answer`. */
function workspace() {
  const waiting: (() => void)[] = [];
  const log = { length: 0 };
  const asked = <Answer>(found: Answer) =>
    vi.fn((folder?: string) => {
      void folder;
      return new Promise<Answer>((resolve) => waiting.push(() => resolve(found)));
    });
  const open = {
    head: 0,
    isLocked: false,
    catchUp: () => {
      open.head = log.length;
      return Promise.resolve(true);
    },
    list: asked<SealedNode[]>([]),
    deleted: asked([]),
    way: () => Promise.resolve([]),
    shown: () => Promise.resolve({}),
    conflicts: () => Promise.resolve({ count: 0 }),
  };
  const answer = () => waiting.splice(0).forEach((resolve) => resolve());
  return { open, log, answer, opened: open as unknown as SealedWorkspace };
}

const client = {} as SynclineClient;
const { signal } = new AbortController();

test('while somebody commits, a folder is listed once at a time, and at last with all that came', async () => {
  const { open, opened, log, answer } = workspace();
  const view = new SealedFolder(opened);
  void view.follow(client, 'w', signal);
  for (let seq = 1; seq <= 100; seq++) {
    log.length = seq;
    tell(seq);
    if (seq % 10 === 0) await turn();
  }
  expect(open.list).toHaveBeenCalledOnce();
  answer();
  // It pauses as long as the reading took.
  await vi.waitFor(() => expect(open.list).toHaveBeenCalledTimes(2));
  answer();
  await turn();
  expect([open.list.mock.calls.length, open.head]).toEqual([2, 100]);
  tell(100);
  await turn();
  expect(open.list).toHaveBeenCalledTimes(2);
});

test('what is told while a folder is listed is listed, also where somebody else has read on to it', async () => {
  const { open, opened, log, answer } = workspace();
  const view = new SealedFolder(opened);
  void view.follow(client, 'w', signal);
  log.length = 1;
  tell(1);
  await turn();
  log.length = 2;
  tell(2);
  await opened.catchUp();
  expect([open.list.mock.calls.length, open.head]).toEqual([1, 2]);
  answer();
  await vi.waitFor(() => expect(open.list).toHaveBeenCalledTimes(2));
  answer();
});

test('a history that does not reach as far as was told is not read without end', async () => {
  const { open, opened, answer } = workspace();
  const trash = new SealedTrash(opened);
  void trash.follow(client, 'w', signal);
  tell(7);
  for (let count = 0; count < 20; count++) {
    answer();
    await turn();
  }
  expect(open.deleted).toHaveBeenCalledTimes(2);
});

test('many who look anew at once look once more together, and another folder waits for none of them', async () => {
  const { open, opened, answer } = workspace();
  const view = new SealedFolder(opened);
  const looks = [view.refresh(), view.refresh(), view.refresh()];
  await turn();
  const other = view.show('other');
  await turn();
  expect(open.list.mock.calls).toEqual([[''], ['other']]);
  answer();
  await Promise.all([...looks, other]);
  // Who looked anew at the one before is not shown it, and it is not listed.
  expect(open.list).toHaveBeenCalledTimes(2);
  expect(view.isComplete).toBe(true);
});
