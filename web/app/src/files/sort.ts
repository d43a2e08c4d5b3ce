import type { Sorting } from '@syncline/file-grid';
import type { Listed } from './kinds.ts';

const collators = new Map<string, Intl.Collator>();

function collatorOf(locale: string): Intl.Collator {
  const found = collators.get(locale);
  if (found) return found;
  const made = new Intl.Collator(locale, { numeric: true });
  collators.set(locale, made);
  return made;
}

/** Says which of two nodes of a list comes first; two of them are never equal. */
export type Order = (a: Listed, b: Listed) => number;

/** Returns the order of a list: folders first, then by the column, and what is equal there by name. */
export function orderOf(sorting: Sorting, locale: string): Order {
  const { compare } = collatorOf(locale);
  const sign = sorting.isDescending ? -1 : 1;
  const byColumn: Order = (a, b) => {
    if (sorting.column === 'size') return (a.size ?? 0) - (b.size ?? 0);
    if (sorting.column === 'modified') return (a.modified ?? 0) - (b.modified ?? 0);
    return compare(a.name, b.name);
  };
  // Two names can be one for people, as where an accent is written in two ways.
  const byUnit: Order = (a, b) => (a.name < b.name ? -1 : Number(a.name > b.name));
  return (a, b) => {
    const folders = Number(b.kind === 'folder') - Number(a.kind === 'folder');
    return folders || sign * byColumn(a, b) || compare(a.name, b.name) || byUnit(a, b);
  };
}

/** Sorts nodes at once. */
export function sortNodes<Row extends Listed>(
  nodes: readonly Row[],
  sorting: Sorting,
  locale: string,
): Row[] {
  return nodes.toSorted(orderOf(sorting, locale));
}

/** After so many nodes that were looked at, or compared, others may have their turn. */
export const STEP = 500;
/** A list that is so many times as long as another one is searched for the places of that, and not gone through. */
const SEARCHED_FROM = 16;

/** A list that is in order, and what tells its nodes apart. */
export interface Known<Row> {
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}

/** Sorts nodes in steps. What is there as it was in a list of the same order keeps its place, and is not compared again. */
export function* sortInSteps<Row extends Listed>(
  nodes: readonly Row[],
  order: Order,
  { rows, keyOf }: Known<Row>,
): Generator<undefined, Row[]> {
  const places = new Map<string, number>();
  for (const [place, row] of rows.entries()) {
    places.set(keyOf(row), place);
    if (place % STEP === 0) yield;
  }
  const stayed: (Row | undefined)[] = Array.from(rows, () => undefined);
  const fresh: Row[] = [];
  for (const [index, node] of nodes.entries()) {
    const place = places.get(keyOf(node)) ?? -1;
    const old = rows[place];
    if (old && !stayed[place] && isAlike(old, node)) stayed[place] = node;
    else fresh.push(node);
    if (index % STEP === 0) yield;
  }
  const others = yield* sortRuns(fresh, order);
  return yield* merge(
    stayed.filter((node) => node !== undefined),
    others,
    order,
  );
}

/** Whether two nodes have the same place in each order. */
const isAlike = (a: Listed, b: Listed) =>
  a.kind === b.kind && a.name === b.name && a.size === b.size && a.modified === b.modified;

function* sortRuns<Row extends Listed>(
  nodes: readonly Row[],
  order: Order,
): Generator<undefined, Row[]> {
  let runs: Row[][] = [];
  const length = Math.floor(STEP / 8);
  for (let start = 0; start < nodes.length; start += length) {
    runs.push(nodes.slice(start, start + length).sort(order));
    yield;
  }
  while (runs.length > 1) {
    const longer: Row[][] = [];
    for (let index = 0; index < runs.length; index += 2)
      longer.push(yield* merge(runs[index] ?? [], runs[index + 1] ?? [], order));
    runs = longer;
  }
  return runs[0] ?? [];
}

function merge<Row extends Listed>(
  one: Row[],
  other: Row[],
  order: Order,
): Generator<undefined, Row[]> {
  const [long, short] = one.length < other.length ? [other, one] : [one, other];
  const isShort = short.length * SEARCHED_FROM < long.length;
  return isShort ? insert(long, short, order) : zip(long, short, order);
}

/** Merges two lists by going through both. */
function* zip<Row extends Listed>(
  one: Row[],
  other: Row[],
  order: Order,
): Generator<undefined, Row[]> {
  const merged: Row[] = [];
  let [at, place] = [0, 0];
  while (at < one.length || place < other.length) {
    const [a, b] = [one[at], other[place]];
    if (a && (!b || order(a, b) < 0)) {
      merged.push(a);
      at++;
    } else if (b) {
      merged.push(b);
      place++;
    }
    if (merged.length % STEP === 0) yield;
  }
  yield;
  return merged;
}

/** Merges a short list into a long one by looking for the place of each. */
function* insert<Row extends Listed>(
  long: Row[],
  short: Row[],
  order: Order,
): Generator<undefined, Row[]> {
  const parts: Row[][] = [];
  let start = 0;
  for (const [index, row] of short.entries()) {
    let [low, high] = [start, long.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (order(long[middle] as Row, row) < 0) low = middle + 1;
      else high = middle;
    }
    parts.push(long.slice(start, low), [row]);
    start = low;
    if (index % Math.floor(STEP / 16) === 0) yield;
  }
  parts.push(long.slice(start));
  yield;
  return parts.flat();
}
