import { ProblemError, type Activity } from '@syncline/api';
import { expect, test } from 'vitest';
import { byDay, isContinued, nameOfDay, timeOfDay } from './days.ts';
import { Happenings } from './happenings.svelte.ts';
import type { ActivityOf } from './source.ts';

const entry = (seq: number, time = 0) => ({ seq, time }) as Activity;
const at = (day: number, hour: number) => new Date(2026, 10, day, hour).getTime() / 1000;

test('what happened is told by day, as the calendar here counts them', () => {
  const list = [entry(4, at(22, 9)), entry(3, at(22, 0)), entry(2, at(21, 23)), entry(1, at(3, 5))];
  const days = byDay(list);
  expect(days.map(({ entries }) => entries.map(({ seq }) => seq))).toEqual([[4, 3], [2], [1]]);
  const now = at(22, 10) * 1000;
  const words = { today: 'Today', yesterday: 'Yesterday' };
  const names = days.map((day) => nameOfDay(day, now, 'en-GB', words));
  expect(names).toEqual(['Today', 'Yesterday', 'Tuesday, 3 November 2026']);
  expect(timeOfDay(at(22, 9), 'en-GB')).toBe('09:00');
});

test('a clock that goes before or after the others makes a day of its own, and nothing is lost', () => {
  const days = byDay([entry(3, at(5, 1)), entry(2, at(6, 1)), entry(1, at(5, 1))]);
  expect(days.map(({ key }) => key)).toEqual(['2026-11-5', '2026-11-6', '2026-11-5']);
});

test('what one device does within a minute is told under one heading', () => {
  const by = (device_id: string, time: number) => ({ device_id, time }) as Activity;
  expect(isContinued(by('a', 119), by('a', 60))).toBe(true);
  expect(isContinued(by('a', 120), by('a', 119))).toBe(false);
  expect(isContinued(by('b', 60), by('a', 60))).toBe(false);
  expect(isContinued(undefined, by('a', 60))).toBe(false);
});

/** A log with so many entries, two on a page, every second page empty. */
function logOf(count: number) {
  const state = { count, failure: undefined as Error | undefined };
  const page = (cursor: string | undefined) => {
    if (state.failure) return Promise.reject(state.failure);
    const before = Number(cursor ?? state.count + 1);
    if (before % 2 === 1 && cursor !== undefined) {
      return Promise.resolve({ items: [], next: before > 1 ? String(before - 1) : null });
    }
    const seqs = [before - 1, before - 2].filter((seq) => seq > 0);
    const next = before > 3 ? String(before - 2) : null;
    return Promise.resolve({ items: seqs.map((seq) => entry(seq)), next });
  };
  return { state, source: { page } as unknown as ActivityOf };
}

test('pages follow each other also where one has nothing in it, and are as many when read anew', async () => {
  const { state, source } = logOf(6);
  const list = new Happenings(source);
  await list.refresh();
  const seqs = () => list.list.map(({ seq }) => seq);
  expect(seqs()).toEqual([6, 5]);
  await list.more();
  expect(seqs().length).toBeGreaterThan(2);
  const shown = seqs().length;
  state.count = 8;
  await list.refresh();
  expect(seqs().slice(0, 2)).toEqual([8, 7]);
  expect(seqs().length).toBeGreaterThanOrEqual(shown);
});

test('what the server refuses is not shown from memory', async () => {
  const { state, source } = logOf(2);
  const list = new Happenings(source);
  await list.refresh();
  state.failure = new ProblemError({ type: '', title: '', detail: '', status: 503, code: 'x' });
  await list.refresh();
  expect([list.list.length, list.failure]).toEqual([2, state.failure]);
  state.failure = new ProblemError({ type: '', title: '', detail: '', status: 404, code: 'x' });
  await list.refresh();
  expect(list.list).toEqual([]);
});
