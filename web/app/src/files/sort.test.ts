import { expect, test } from 'vitest';
import type { Listed } from './kinds.ts';
import { orderOf, sortInSteps, sortNodes, STEP, type Order } from './sort.ts';

/** Numbers by chance, the same each time. */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

function node(name: string, number: (limit: number) => number): Listed {
  const kind = number(5) === 0 ? 'folder' : 'file';
  const [size, modified] = [number(4), number(4)];
  return {
    kind,
    name,
    path: name,
    size,
    modified,
    target: null,
    is_conflict: false,
    mounted: null,
  };
}

/** Names that sort otherwise than their code units do, each once. */
function nodesOf(count: number, number: (limit: number) => number): Listed[] {
  const letters = ['a', 'A', 'ä', 'a\u0308', 'b', 'Z', '_', '10', '9', ' '];
  const names = new Set<string>();
  while (names.size < count)
    names.add(Array.from({ length: 6 }, () => letters[number(letters.length)]).join(''));
  return [...names].map((name) => node(name, number));
}

const keyOf = ({ path }: Listed) => path;

/** Runs all steps; returns the list, and how often was compared in all and in the longest step. */
function run(nodes: Listed[], order: Order, rows: readonly Listed[]) {
  let [all, now, most] = [0, 0, 0];
  const counting: Order = (a, b) => {
    [all, now] = [all + 1, now + 1];
    most = Math.max(most, now);
    return order(a, b);
  };
  const steps = sortInSteps(nodes, counting, { rows, keyOf });
  for (;;) {
    const { done, value } = steps.next();
    if (done) return { sorted: value, all, most };
    now = 0;
  }
}

test('a list that is sorted in steps is the one that is sorted at once, whatever was there before', () => {
  for (let seed = 0; seed < 60; seed++) {
    const number = numbers(seed);
    const column = ['name', 'size', 'modified'][seed % 3] ?? 'name';
    const sorting = { column, isDescending: number(2) === 0 };
    const nodes = nodesOf(number(3 * STEP), number);
    const before = nodes
      .filter(() => number(3) > 0)
      .map((one) => (number(40) === 0 ? { ...one, size: number(9), kind: 'file' as const } : one));
    const known = sortNodes(
      [
        ...before,
        ...nodesOf(number(60), number).map((one) => ({ ...one, path: `gone/${one.path}` })),
      ],
      sorting,
      'de',
    );
    const { sorted } = run(nodes, orderOf(sorting, 'de'), known);
    expect(sorted).toEqual(sortNodes(nodes, sorting, 'de'));
    // The rows are those of now.
    expect(sorted.every((row) => nodes.includes(row))).toBe(true);
  }
});

test('rows of one key are all shown', () => {
  const number = numbers(1);
  const nodes = ['a', 'b', 'b', 'c'].map((name) => ({
    ...node(name, number),
    kind: 'file' as const,
  }));
  const order = orderOf({ column: 'name', isDescending: false }, 'en');
  expect(run(nodes, order, nodes).sorted.map(({ name }) => name)).toEqual(['a', 'b', 'b', 'c']);
});

test('no step is long, and where one of many is new hardly anything is compared', () => {
  const nodes = nodesOf(20_000, numbers(7));
  const order = orderOf({ column: 'name', isDescending: false }, 'en');
  const first = run(nodes, order, []);
  expect(first.most).toBeLessThan(2 * STEP);
  expect(first.sorted).toHaveLength(nodes.length);
  const changed = nodes.map((one, index) => (index === 777 ? { ...one, name: 'new' } : { ...one }));
  const next = run(changed, order, first.sorted);
  expect(next.sorted.some(({ name }) => name === 'new')).toBe(true);
  expect(next.all).toBeLessThan(20);
});
