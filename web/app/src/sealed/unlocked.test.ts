import { NoConnection, type SynclineClient } from '@syncline/api';
import type { SealedWorkspace } from '@syncline/core';
import { expect, test, vi } from 'vitest';

// It belongs to the page.
vi.hoisted(() => vi.stubGlobal('addEventListener', () => undefined));

const core = vi.hoisted(() => ({
  open: () => Promise.reject<SealedWorkspace>(new Error('no test says how')),
}));
vi.mock('@syncline/core', () => ({ SealedWorkspace: { open: () => core.open() } }));
const server = vi.hoisted(() => ({ send: vi.fn<() => Promise<void>>() }));
vi.mock('@syncline/api', async (original) => ({
  ...(await original<typeof import('@syncline/api')>()),
  sendCommit: () => server.send(),
  storePack: () => server.send(),
}));
// What a browser keeps of workspaces.
vi.mock('./seen.ts', () => ({ noteSealed: () => undefined, seenOf: () => undefined }));

const { sourceOf, unlocked } = await import('./unlocked.svelte.ts');

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

test('what a bad line has kept from being sent is not sent for who signs in next', async () => {
  server.send.mockImplementation(() => Promise.reject(new NoConnection(new Error('away'))));
  const source = sourceOf(client, 'w');
  const [bytes, { signal }] = [new Uint8Array(), new AbortController()];
  const sent = [source.commit(bytes), source.putPack('p', bytes, signal)];
  const refused = sent.map((one) => expect(one).rejects.toThrow());
  await new Promise((resolve) => setTimeout(resolve));
  expect(server.send).toHaveBeenCalledTimes(2);
  unlocked.lockAll();
  await Promise.all(refused);
  await expect(source.commit(bytes)).rejects.toMatchObject({ code: 'locked' });
  expect(server.send).toHaveBeenCalledTimes(2);
});
