// Stories for tests: people who edit both sides, and rounds that are cut off.

import { expect } from 'vitest';
import { Dice } from './dice.testing.ts';
import { folderOf } from './engine.ts';
import { engineOf, file, folder, settle, signal, type ServerOf } from './engine.testing.ts';
import { ModelServer } from './model-server.testing.ts';
import { Cut, World, type Entry } from './world.testing.ts';

interface Told {
  cuts: number;
  setBacks: number;
  moves: number;
  moved: number;
}

const NAMES = ['a', 'b', 'c', 'd'];

/** People who edit both sides. Every content is written once. */
class People {
  readonly written: string[] = [];
  /** What somebody replaced or deleted knowingly. */
  readonly superseded = new Set<string>();
  moves = 0;
  #next = 0;

  constructor(
    readonly world: World,
    readonly dice: Dice,
  ) {}

  edit(): void {
    const { world, dice } = this;
    const isHere = dice.hits(2);
    const side: Map<string, Entry> = isHere ? world.here : world.there;
    const folders = [
      '',
      ...[...side].filter(([, { kind }]) => kind === 'folder').map(([path]) => path),
    ];
    const parent = dice.pick(folders) ?? '';
    const name = dice.pick(NAMES) ?? 'a';
    const path = parent === '' ? name : `${parent}/${name}`;
    const put = (entry: Omit<Entry, 'modifiedMs'>) =>
      isHere ? world.putHere(path, entry) : world.putThere(path, entry);
    const found = side.get(path);
    if (dice.hits(5)) return this.#move(isHere, parent, name);
    const [isDeleting, isFolder] = [dice.hits(4), dice.hits(4)];
    if (isDeleting || path.split('/').length > 3) this.#delete(side, path);
    else if (isFolder && !found) put(folder);
    else if (found?.kind !== 'folder') this.#write(found, put);
  }

  /** Gives a file or a folder another place, where nothing is: as file systems and servers do, with all that is in it. */
  #move(isHere: boolean, parent: string, name: string): void {
    const { world, dice } = this;
    const side: Map<string, Entry> = isHere ? world.here : world.there;
    const from = dice.pick([...side.keys()]);
    const to = parent === '' ? name : `${parent}/${name}`;
    if (from === undefined || side.has(to) || `${to}/`.startsWith(`${from}/`)) return;
    for (const [one, entry] of [...side]) {
      if (one !== from && !one.startsWith(`${from}/`)) continue;
      const place = to + one.slice(from.length);
      if (!isHere) world.moveThere(one, place);
      else if (world.here.delete(one)) world.here.set(place, entry);
    }
    this.moves++;
  }

  #write(found: Entry | undefined, put: (entry: Omit<Entry, 'modifiedMs'>) => void): void {
    if (found) this.superseded.add(found.content);
    const content = `${this.dice.hits(3) ? 'long ' : ''}${this.#next++}`;
    this.written.push(content);
    put(file(content));
  }

  #delete(side: Map<string, Entry>, path: string): void {
    for (const [one, { content }] of [...side]) {
      if (one !== path && !one.startsWith(`${path}/`)) continue;
      this.superseded.add(content);
      side.delete(one);
      if (side === this.world.there) this.world.grow();
    }
  }

  /** The server is set back. What had come to it alone is lost with that, and nobody here can help it. */
  setBack(deed: () => void): void {
    deed();
    const sides = [...this.world.here.values(), ...this.world.there.values()];
    const alive = new Set(sides.map(({ content }) => content));
    for (const one of this.written) if (!alive.has(one)) this.superseded.add(one);
  }
}

/** Settles all, and gives another name to each file there that stands in the way of a folder here, as somebody would. */
async function settleAll(world: World, serverOf: ServerOf): Promise<void> {
  for (;;) {
    const { problems } = await settle(world, serverOf);
    let hasClash = false;
    for (let { path } of problems) {
      while (path !== '' && world.there.get(path)?.kind !== 'file') path = folderOf(path);
      const found = world.there.get(path);
      if (!found || world.here.get(path)?.kind !== 'folder') continue;
      hasClash = true;
      world.there.delete(path);
      world.there.set(`${path}!`, found);
      world.grow();
    }
    if (!hasClash) return;
  }
}

/** One story: edits, rounds that are cut off, and at last peace. Throws where anything is lost, or both sides differ. */
async function tell(seed: number, serverOf: ServerOf, isSetBack: boolean): Promise<Told> {
  const [world, dice] = [new World(), new Dice(seed)];
  const people = new People(world, dice);
  let [cuts, moved, setBacks] = [0, 0, 0];
  let backup: (() => void) | null = null;
  let engine = engineOf(world, serverOf(world));
  for (let step = 0; step < 12; step++) {
    for (let edits = dice.below(4); edits > 0; edits--) people.edit();
    const cutIn = 8 + dice.below(24);
    const editIn = 8 + dice.below(24);
    const disturb = () => {
      if (dice.hits(editIn)) people.edit();
      if (dice.hits(cutIn)) throw new Cut();
    };
    [world.before, world.after] = [disturb, disturb];
    try {
      moved += (await engine.round({ signal, confirmed: Infinity })).moved;
      // Where a round has ended it is known how far the history was. A server that is set back breaks the stream of its events.
      if (isSetBack && backup && dice.hits(3)) {
        people.setBack(backup);
        engine.forgetRemote();
        setBacks++;
        backup = null;
      } else if (isSetBack && dice.hits(3)) {
        backup ??= world.backUp();
      }
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      cuts++;
      engine = engineOf(world, serverOf(world));
    }
    // Events say when the server has news; they may be late.
    if (dice.hits(2)) engine.forgetRemote();
  }
  [world.before, world.after] = [() => undefined, () => undefined];
  await settleAll(world, serverOf);
  expect(World.show(world.here), `seed ${seed}`).toEqual(World.show(world.there));
  const alive = new Set([...world.here.values()].map(({ content }) => content));
  const kept = new Set([...alive, ...world.trash, ...world.history]);
  for (const content of people.written) {
    const isLost = !alive.has(content) && !people.superseded.has(content);
    expect(isLost, `seed ${seed}: '${content}' is gone, and nobody said so`).toBe(false);
    expect(kept.has(content) || people.superseded.has(content), `seed ${seed}`).toBe(true);
  }
  return { cuts, setBacks, moves: people.moves, moved };
}

/** Tells so many stories; returns what there was in all of them. A server that cannot read the workspace is not set back: that is noticed
 * where the history is read, before anything is listed. */
export async function tellAll(seeds: number, serverOf?: ServerOf): Promise<Told> {
  const all: Told = { cuts: 0, setBacks: 0, moves: 0, moved: 0 };
  for (let seed = 0; seed < seeds; seed++) {
    const told = await tell(seed, serverOf ?? ((world) => new ModelServer(world)), !serverOf);
    for (const key of ['cuts', 'setBacks', 'moves', 'moved'] as const) all[key] += told[key];
  }
  return all;
}
