import { expect, test } from 'vitest';
import { Pace } from './pace.ts';

test('an even speed is told as it is, and the time that is left with it', () => {
  const pace = new Pace();
  expect(pace.secondsFor(1)).toBeNull();
  for (let at = 0; at <= 10; at++) pace.note(at * 1_000, at * 500);
  expect(pace.rate).toBeCloseTo(2_000);
  expect(pace.secondsFor(6_000)).toBeCloseTo(3);
});

test('one fast piece among slow ones does not make it jump', () => {
  const pace = new Pace();
  for (let at = 0; at <= 20; at++) pace.note(at * 1_000, at * 1_000);
  pace.note(30_000, 20_300);
  expect(pace.rate).toBeGreaterThan(1_000);
  expect(pace.rate).toBeLessThan(4_000);
  for (let at = 1; at <= 30; at++) pace.note(30_000 + at * 1_000, 20_300 + at * 1_000);
  expect(pace.rate).toBeCloseTo(1_000, -2);
});

test('after a pause, and where it begins anew, nothing of before counts', () => {
  const pace = new Pace();
  pace.note(0, 0);
  pace.note(1_000_000, 1_000);
  pace.rest();
  expect(pace.rate).toBeNull();
  pace.note(1_000_000, 60_000);
  pace.note(1_001_000, 61_000);
  expect(pace.rate).toBeCloseTo(1_000);
  pace.note(0, 62_000);
  pace.note(1_000, 63_000);
  expect(pace.rate).toBeCloseTo(1_000);
});
