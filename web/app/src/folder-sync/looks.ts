// What is looked at piece by piece: something that is moved meanwhile is seen in none of its places, or in two. What is in doubt is looked
// at again, and is believed when it was so the time before.

import { folderOf } from './engine.ts';
import type { Base, Local } from './plan.ts';
import type { Tree } from './ports.ts';

/** How often a side is looked at in a row at most, while it changes all the time. */
const LOOKS_MAX = 4;

type Rows = ReadonlyMap<string, Base>;

/** What was seen at last, and the paths that are still in doubt: nothing is done to those in this round. */
export interface Looked<One> {
  tree: Tree<One>;
  unsure: string[];
}

/** Looks again until all that is in doubt was so the time before, and it is quiet. */
export async function lookUntilSure<One>(
  first: Tree<One>,
  again: () => Promise<Tree<One>>,
  doubtsOf: (tree: Tree<One>) => Set<string>,
  isQuiet: () => boolean = () => true,
): Promise<Looked<One>> {
  let [tree, before] = [first, new Set<string>()];
  for (let looks = 1; ; looks++) {
    const doubts = doubtsOf(tree);
    const unsure = [...doubts].filter((path) => !before.has(path));
    if ((unsure.length === 0 && isQuiet()) || looks === LOOKS_MAX) return { tree, unsure };
    before = doubts;
    tree = await again();
  }
}

/** What both had and is not there any more. What is passed over is never found, and means nothing. */
export function missingIn({ found, skipped }: Tree<unknown>, rows: Rows): Set<string> {
  const isLeftOut = leavesOut(skipped);
  return new Set([...rows.keys()].filter((path) => !found.has(path) && !isLeftOut(path)));
}

/**
 * What is missing in the folder, or looks like a file that is new: it may have been seen where it was and where it is. What cannot be read
 * may have gone between the list of its folder and the look at it.
 */
export function doubtfulIn(tree: Tree<Local>, rows: Rows): Set<string> {
  const doubtful = missingIn(tree, rows);
  for (const [path, reason] of tree.skipped) {
    if (reason === 'unreadable' && rows.has(path)) doubtful.add(path);
  }
  const fresh = [...tree.found].filter(([path, { kind }]) => kind === 'file' && !rows.has(path));
  const statOf = ({ size, modifiedMs }: Local) => `${size} ${modifiedMs}`;
  const stats = new Set(fresh.map(([, here]) => statOf(here)));
  for (const [path, here] of stats.size > 0 ? tree.found : []) {
    if (rows.has(path) && stats.has(statOf(here))) doubtful.add(path);
  }
  return doubtful;
}

/** Tells what is among some paths, or lies in one of them. */
export function leavesOut(
  paths: Pick<ReadonlySet<string>, 'size' | 'has'>,
): (path: string) => boolean {
  if (paths.size === 0) return () => false;
  return (path) => {
    for (let at = path; at !== ''; at = folderOf(at)) if (paths.has(at)) return true;
    return false;
  };
}
