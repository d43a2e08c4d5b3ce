// Worlds for tests: made, settled and looked at.

import { Engine } from './engine.ts';
import type { Report } from './report.ts';
import type { Server } from './ports.ts';
import { ModelRows, ModelServer } from './model-server.testing.ts';
import { ModelDisk, World, type Entry } from './world.testing.ts';

export type ServerOf = (world: World) => Server;

const LABEL = 'conflict browser';

/** Keeps both sides of a world equal. */
export function engineOf(world: World, server: Server = new ModelServer(world)): Engine {
  return new Engine({
    disk: new ModelDisk(world),
    server,
    rows: new ModelRows(world),
    digest: async (file) => `content ${await file.text()}`,
    now: () => world.nowMs,
    label: LABEL,
  });
}

export const signal = new AbortController().signal;

/** Runs rounds until nothing is left to do; returns what the last one said. */
export async function settle(world: World, serverOf?: ServerOf): Promise<Report> {
  for (let round = 0; round < 20; round++) {
    const engine = engineOf(world, serverOf?.(world));
    const before = JSON.stringify([...world.here, ...world.there]);
    const report = await engine.round({ signal, confirmed: Infinity });
    const isQuiet = before === JSON.stringify([...world.here, ...world.there]);
    if (isQuiet && !report.isStale) return report;
  }
  throw new Error('it never ends');
}

export const file = (content: string) => ({ kind: 'file', content }) as const;
export const folder = { kind: 'folder', content: '' } as const;

export type Side = Record<string, string>;

function fill(put: (path: string, entry: Omit<Entry, 'modifiedMs'>) => void, side: Side): void {
  for (const [path, content] of Object.entries(side)) {
    put(path, content === '/' ? folder : file(content));
  }
}

/** A folder and a server that had `synced` in common, and were changed since to what is said. */
export async function worldOf(synced: Side, here: Side, there: Side): Promise<World> {
  const world = new World();
  fill((path, entry) => world.putThere(path, entry), synced);
  await settle(world);
  for (const [side, now] of [
    [world.here, here],
    [world.there, there],
  ] as const) {
    for (const path of [...side.keys()]) {
      const kind = now[path] === '/' ? 'folder' : 'file';
      if (!(path in now) || side.get(path)?.kind !== kind) side.delete(path);
    }
  }
  const changed = (side: Map<string, Entry>, now: Side) =>
    Object.fromEntries(
      Object.entries(now).filter(
        ([path, content]) => content !== (side.get(path)?.content || (side.has(path) ? '/' : null)),
      ),
    );
  fill((path, entry) => world.putHere(path, entry), changed(world.here, here));
  fill((path, entry) => world.putThere(path, entry), changed(world.there, there));
  return world;
}

export const shown = (side: Map<string, Entry>) =>
  Object.fromEntries(
    [...side].map(([path, { kind, content }]) => [path, kind === 'folder' ? '/' : content]),
  );
