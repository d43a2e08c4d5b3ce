import type { SynclineClient } from '@syncline/api';
import type { SealedWorkspace } from '@syncline/core';
import { expect, test, vi } from 'vitest';

// It belongs to the page.
vi.hoisted(() => vi.stubGlobal('addEventListener', () => undefined));

const core = vi.hoisted(() => ({
  open: () => Promise.reject<SealedWorkspace>(new Error('no test says how')),
}));
vi.mock('@syncline/core', () => ({ SealedWorkspace: { open: () => core.open() } }));
// What a browser keeps of workspaces.
vi.mock('./seen.ts', () => ({ noteSealed: () => undefined, seenOf: () => undefined }));

const { unlocked } = await import('./unlocked.svelte.ts');

const client = {
  whoAmI: () => Promise.resolve({ device_id: 'd', device_name: 'Firefox', account: 'anna' }),
} as unknown as SynclineClient;

/** Gives a passphrase; the keys are there as soon as `arrive` is called. */
function unlocking(id: string) {
  let arrive = (): void => undefined;
  const lock = vi.fn();
  const isAsked = new Promise<void>((asked) => {
    core.open = () =>
      new Promise((resolve) => {
        arrive = () => resolve({ lock } as unknown as SealedWorkspace);
        asked();
      });
  });
  const done = unlocked.unlock(client, { id, isOwn: true }, 'passphrase');
  return { done, isAsked, lock, arrive: () => arrive() };
}

test('keys that are there after somebody has signed out are forgotten at once', async () => {
  const late = unlocking('w');
  await late.isAsked;
  unlocked.lockAll();
  late.arrive();
  await expect(late.done).rejects.toMatchObject({ code: 'locked' });
  expect(late.lock).toHaveBeenCalledOnce();
  expect(unlocked.open.size).toBe(0);

  const inTime = unlocking('w');
  await inTime.isAsked;
  inTime.arrive();
  await inTime.done;
  expect([...unlocked.open.keys()]).toEqual(['w']);
  expect(inTime.lock).not.toHaveBeenCalled();
  unlocked.lockAll();
  expect(inTime.lock).toHaveBeenCalledOnce();
  expect(unlocked.open.size).toBe(0);
});

test('a download that is tried again after locking and unlocking reads what is open then', async () => {
  const opened = (name: string) =>
    ({ files: { read: () => name }, lock: () => undefined }) as unknown as SealedWorkspace;
  const [before, after] = [opened('before'), opened('after')];
  const { signal } = new AbortController();
  const read = () => unlocked.read({ id: 'w', open: before }, { file: 'f' }, 1, signal).body;
  core.open = () => Promise.resolve(before);
  await unlocked.unlock(client, { id: 'w', isOwn: true }, 'passphrase');
  expect(read()).toBe('before');
  unlocked.lock('w');
  // The one that is locked says so.
  expect(read()).toBe('before');
  core.open = () => Promise.resolve(after);
  await unlocked.unlock(client, { id: 'w', isOwn: true }, 'passphrase');
  expect(read()).toBe('after');
  unlocked.lockAll();
});
