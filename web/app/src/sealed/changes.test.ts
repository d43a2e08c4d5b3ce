import type { Node } from '@syncline/api';
import type { SealedWorkspace } from '@syncline/core';
import { beforeEach, expect, test, vi } from 'vitest';
import { SEALED_ROOT } from '../shell/route.ts';
import { en } from '../words/en.ts';

const told = vi.hoisted(() => ({ say: vi.fn(), fail: vi.fn() }));
vi.mock('../shell/notices.svelte.ts', () => ({ notices: told }));
vi.mock('../words/words.svelte.ts', () => ({ t: () => en }));

const { SealedActs } = await import('./changes.svelte.ts');
const { SealedFolder } = await import('./view.svelte.ts');

const nodeOf = (version: number, name = 'plan.txt') => ({ id: 'n', version, name }) as Node;

/** Somebody who looks at a folder with these nodes in it. */
function looking(nodes: Node[], isPartial = false) {
  const undo = vi.fn(() => Promise.resolve({ isPartial: false }));
  const move = vi.fn<(nodes: unknown, folder: string) => Promise<object>>(() =>
    Promise.resolve({ node: null, isPartial, undo }),
  );
  const open = { changes: { move } } as unknown as SealedWorkspace;
  const view = new SealedFolder(open);
  view.nodes = nodes;
  vi.spyOn(view, 'refresh').mockResolvedValue();
  const reveal = vi.fn(() => Promise.resolve());
  return { acts: new SealedActs(view, reveal), view, move, undo, reveal };
}

beforeEach(() => void vi.clearAllMocks());

test('a new name is for the version that was seen, and taken back as a move is', async () => {
  const { acts, move, undo, reveal } = looking([nodeOf(3)]);
  await acts.rename(SEALED_ROOT, nodeOf(3), 'new.txt');
  expect(move.mock.calls).toEqual([[[{ id: 'n', version: 3, name: 'new.txt' }], SEALED_ROOT]]);
  expect(reveal).toHaveBeenCalledWith('n');
  const [[, takeBack]] = told.say.mock.calls as [[string, () => Promise<void>]];
  await takeBack();
  expect(undo).toHaveBeenCalledOnce();
});

test('what was only filled anew while its name is typed is renamed, and what others have moved or renamed is not', async () => {
  const versionFor = async (shown: Node[], within = SEALED_ROOT) => {
    const { acts, view, move } = looking(shown);
    if (within !== SEALED_ROOT) view.way = [{ id: within } as Node];
    await acts.rename(SEALED_ROOT, nodeOf(3), 'new.txt');
    return (move.mock.calls[0]?.[0] as Node[])[0]?.version;
  };
  expect(await versionFor([nodeOf(4)])).toBe(4);
  expect(await versionFor([nodeOf(4, 'theirs.txt')])).toBe(3);
  expect(await versionFor([])).toBe(3);
  // Somebody has moved it into the folder that is shown by now.
  expect(await versionFor([nodeOf(4)], 'other')).toBe(3);
});

test('where others were first it is not called renamed', async () => {
  const { acts } = looking([nodeOf(3)], true);
  await acts.rename(SEALED_ROOT, nodeOf(3), 'new.txt');
  expect(told.fail).toHaveBeenCalledOnce();
  expect(told.say).not.toHaveBeenCalled();
});
