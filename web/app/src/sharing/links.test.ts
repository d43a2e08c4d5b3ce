import { expect, test } from 'vitest';
import { makePassword, requestOf, type Draft } from './links.ts';

const draft: Draft = { expiry: 7, day: '', password: '', limit: null };
const now = new Date('2026-11-22T12:00:00').getTime();

test('a link ends when somebody said, and never where nobody did', () => {
  expect(requestOf(draft, 'a', now)?.expires_in_seconds).toBe(7 * 86_400);
  expect(requestOf({ ...draft, expiry: 'never' }, 'a', now)?.expires_in_seconds).toBeNull();
  const today = requestOf({ ...draft, expiry: 'day', day: '2026-11-22' }, 'a', now);
  expect(today?.expires_in_seconds).toBe(12 * 3_600 - 1);
});

test('a day that is over, or none at all, makes no link', () => {
  for (const day of ['2026-11-21', '']) {
    expect(requestOf({ ...draft, expiry: 'day', day }, 'a', now), day).toBeNull();
  }
});

test('what was left empty is not asked for', () => {
  const plain = { path: 'a', password: null, downloads_max: null };
  expect(requestOf(draft, 'a', now)).toMatchObject(plain);
  const full = requestOf({ ...draft, password: 'p', limit: 3 }, '', now);
  expect(full).toMatchObject({ path: '', password: 'p', downloads_max: 3 });
});

test('a password that is made up has five bits in every sign, and groups', () => {
  const all = Uint8Array.from({ length: 256 }, (_, at) => at);
  const counts = new Map<string, number>();
  for (const sign of makePassword(all).replaceAll('-', '')) {
    counts.set(sign, (counts.get(sign) ?? 0) + 1);
  }
  expect([counts.size, new Set(counts.values())]).toEqual([32, new Set([8])]);
  expect(makePassword()).toMatch(/^(\w{4}-){3}\w{4}$/);
  expect(makePassword()).not.toBe(makePassword());
});
