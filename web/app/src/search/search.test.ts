import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  NameSearch,
  PAUSE_MS,
  piecesOf,
  type Hit,
  type Hits,
  type Source,
} from './search.svelte.ts';

interface Question {
  query: string;
  cursor: string | undefined;
  signal: AbortSignal;
  answer(hits: Hits): void;
  fail(error: Error): void;
}

let questions: Question[];
let search: NameSearch;

const source: Source = {
  find: (query, cursor, signal) =>
    new Promise((answer, fail) => questions.push({ query, cursor, signal, answer, fail })),
};

function hit(name: string): Hit {
  const rest = { size: null, modified: null, marks: [], folders: [], address: '' };
  return { id: name, kind: 'file', name, ...rest };
}

const names = () => search.hits.map(({ name }) => name);

beforeEach(() => {
  vi.useFakeTimers();
  questions = [];
  search = new NameSearch(source);
});

afterEach(() => vi.useRealTimers());

async function answer(question: Question | undefined, hits: Hits): Promise<void> {
  question?.answer(hits);
  await vi.advanceTimersByTimeAsync(0);
}

async function typeAndWait(text: string): Promise<Question | undefined> {
  search.type(text);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  return questions.at(-1);
}

test('one question is asked when the typing pauses', async () => {
  for (const text of ['p', 'pl', 'pla', 'plan', 'plan ']) search.type(text);
  expect(search.isBusy).toBe(true);
  await vi.advanceTimersByTimeAsync(PAUSE_MS - 1);
  expect(questions).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(questions.map(({ query }) => query)).toEqual(['plan']);
  await answer(questions[0], { hits: [hit('plan.txt')], next: null });
  expect([names(), search.answered, search.isBusy]).toEqual([['plan.txt'], 'plan', false]);
});

test('a question is broken off by the next one, and its answer is not shown', async () => {
  const first = await typeAndWait('a');
  const second = await typeAndWait('ab');
  expect(first?.signal.aborted).toBe(true);
  await answer(second, { hits: [hit('ab')], next: null });
  await answer(first, { hits: [hit('a')], next: 'x' });
  expect([names(), search.answered, search.next]).toEqual([['ab'], 'ab', null]);
  const third = await typeAndWait('abc');
  first?.fail(new Error('late'));
  search.type('');
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(third?.signal.aborted).toBe(true);
  expect([names(), search.answered, search.isBusy, search.failure]).toEqual([
    [],
    '',
    false,
    undefined,
  ]);
});

test('pages follow each other, and one that fails loses none of those before', async () => {
  await answer(await typeAndWait('a'), { hits: [hit('a1')], next: 'on' });
  void search.more();
  void search.more();
  expect(questions.map(({ cursor }) => cursor)).toEqual([undefined, 'on']);
  questions[1]?.fail(new Error('away'));
  await vi.advanceTimersByTimeAsync(0);
  expect([names(), search.next, search.isBusy]).toEqual([['a1'], 'on', false]);
  expect(search.failure).toBeInstanceOf(Error);
  void search.more();
  await answer(questions[2], { hits: [hit('a2')], next: null });
  expect([names(), search.next, search.failure]).toEqual([['a1', 'a2'], null, undefined]);
});

test('what fails at first shows nothing of before, and is asked again', async () => {
  await answer(await typeAndWait('a'), { hits: [hit('a1')], next: null });
  (await typeAndWait('b'))?.fail(new Error('away'));
  await vi.advanceTimersByTimeAsync(0);
  expect([names(), search.answered, search.isBusy]).toEqual([[], '', false]);
  void search.retry();
  await answer(questions.at(-1), { hits: [hit('b')], next: null });
  expect([names(), search.answered, search.failure]).toEqual([['b'], 'b', undefined]);
});

test('a name in pieces is the name, whatever the marks are', () => {
  const marked = (name: string, ...marks: [number, number][]) =>
    piecesOf(
      name,
      marks.map(([start, end]) => ({ start, end })),
    ).map(({ text, isMarked }) => (isMarked ? `[${text}]` : text));
  expect(marked('my plan.txt', [3, 7])).toEqual(['my ', '[plan]', '.txt']);
  expect(marked('plan', [0, 4])).toEqual(['[plan]']);
  expect(marked('a b', [0, 1], [2, 3])).toEqual(['[a]', ' ', '[b]']);
  expect(marked('plan')).toEqual(['plan']);
  expect(marked('😀b', [2, 3])).toEqual(['😀', '[b]']);
  for (const wild of [
    [[9, 12]],
    [[2, 1]],
    [
      [3, 9],
      [1, 2],
    ],
    [
      [0, 2],
      [1, 3],
    ],
  ] as [number, number][][]) {
    expect(
      marked('plan', ...wild)
        .join('')
        .replace(/[[\]]/g, ''),
    ).toBe('plan');
  }
});
