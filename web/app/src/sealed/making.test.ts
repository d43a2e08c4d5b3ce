import { NoConnection, type SynclineClient } from '@syncline/api';
import type { SealedMaking } from '@syncline/core';
import { beforeEach, expect, test, vi } from 'vitest';

// It belongs to the page.
vi.hoisted(() => vi.stubGlobal('addEventListener', () => undefined));

const server = vi.hoisted(() => ({ make: vi.fn<() => Promise<void>>() }));
vi.mock('@syncline/api', async (original) => ({
  ...(await original<typeof import('@syncline/api')>()),
  createSealed: () => server.make(),
}));
vi.mock('@syncline/core', () => ({ SealedMaking: {} }));
// What a browser keeps of workspaces.
vi.mock('./seen.ts', () => ({ noteSealed: () => undefined, seenOf: () => undefined }));
const half = vi.hoisted(() => ({
  finish: vi.fn<() => Promise<void>>(),
  remember: () => undefined,
}));
vi.mock('./half-made.ts', () => half);

const { found } = await import('./making.ts');
const { unlocked } = await import('./unlocked.svelte.ts');

const client = {
  whoAmI: () => Promise.resolve({ device_id: 'd', device_name: 'Firefox', account: 'ada' }),
} as unknown as SynclineClient;

/** Something that waits until it is told to be done. */
function held() {
  let [arrive, ask] = [(): void => undefined, (): void => undefined];
  const isAsked = new Promise<void>((resolve) => (ask = resolve));
  const deed = () => {
    ask();
    return new Promise<void>((resolve) => (arrive = resolve));
  };
  return { deed, isAsked, arrive: () => arrive() };
}

function making(open: () => Promise<void> = () => Promise.resolve()) {
  const lock = vi.fn();
  const leave = vi.fn(() => Promise.resolve());
  const made = { id: 'w', recoveryKey: 'KEY', generation: 1 };
  const opened = vi.fn(() => open().then(() => ({ lock })));
  return { made, leave, lock, open: opened };
}

const begin = (what: ReturnType<typeof making>) => found(client, what as unknown as SealedMaking);

beforeEach(() => {
  unlocked.lockAll();
  server.make.mockReset().mockResolvedValue();
  half.finish.mockReset().mockResolvedValue();
});

test('a workspace is made, and open with its recovery key in front', async () => {
  const what = making();
  expect(await begin(what)).toBe('w');
  expect([...unlocked.open.keys()]).toEqual(['w']);
  expect([...unlocked.unkept]).toEqual([['w', 'KEY']]);
  unlocked.lockAll();
  expect(what.lock).toHaveBeenCalledOnce();
  expect(unlocked.unkept.size).toBe(0);
});

test('who signs out while it is made sends nothing more, and nobody sees its recovery key', async () => {
  const late = held();
  server.make.mockImplementation(late.deed);
  const what = making();
  const done = begin(what);
  await late.isAsked;
  unlocked.lockAll();
  late.arrive();
  await expect(done).rejects.toMatchObject({ code: 'locked' });
  expect(half.finish).not.toHaveBeenCalled();
  expect(what.open).not.toHaveBeenCalled();
  expect(what.leave).toHaveBeenCalledOnce();
  expect([unlocked.open.size, unlocked.unkept.size]).toEqual([0, 0]);
});

test('who signs out while it is opened leaves it locked, and nobody sees its recovery key', async () => {
  const late = held();
  const what = making(late.deed);
  const done = begin(what);
  await late.isAsked;
  unlocked.lockAll();
  late.arrive();
  await expect(done).rejects.toMatchObject({ code: 'locked' });
  expect(what.lock).toHaveBeenCalledOnce();
  expect([unlocked.open.size, unlocked.unkept.size]).toEqual([0, 0]);
});

test('what a bad line has kept from being made is not sent for who signs in next', async () => {
  let isTried = (): void => undefined;
  const tried = new Promise<void>((resolve) => (isTried = resolve));
  server.make.mockImplementation(() => {
    isTried();
    return Promise.reject(new NoConnection(new Error('away')));
  });
  const what = making();
  const done = begin(what);
  await tried;
  await new Promise((resolve) => setTimeout(resolve));
  unlocked.lockAll();
  await expect(done).rejects.toMatchObject({ code: 'locked' });
  expect(server.make).toHaveBeenCalledOnce();
  expect(what.leave).toHaveBeenCalledOnce();
});
