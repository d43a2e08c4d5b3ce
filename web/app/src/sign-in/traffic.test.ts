import { expect, test, vi } from 'vitest';
import { countingSent, isOfSession, Traffic } from './traffic.ts';

const DAY = 86_400;
const TODAY = 20_000 * DAY;
const NOON = (TODAY + DAY / 2) * 1000;

/** A place that may be full. */
function placeOf(text: string | null = null) {
  const place = {
    text,
    isFull: false,
    getItem: () => place.text,
    setItem: (_: string, written: string) => {
      if (place.isFull) throw new DOMException('it is full', 'QuotaExceededError');
      place.text = written;
    },
  };
  return place;
}

test('what is counted is there at once, and is written a little later', () => {
  vi.useFakeTimers();
  try {
    const place = placeOf();
    const traffic = new Traffic(
      'key',
      () => place,
      () => NOON,
    );
    traffic.note(5, 0);
    traffic.note(0, 70);
    const expected = {
      sent: [{ day: TODAY, bytes: 5 }],
      received: [{ day: TODAY, bytes: 70 }],
    };
    expect([traffic.days(), place.text]).toEqual([expected, null]);
    vi.advanceTimersByTime(1_000);
    expect([traffic.days(), place.text]).toEqual([expected, JSON.stringify([[TODAY, 5, 70]])]);
    traffic.note(1, 1);
    vi.advanceTimersByTime(1_000);
    expect(place.text).toBe(JSON.stringify([[TODAY, 6, 71]]));
  } finally {
    vi.useRealTimers();
  }
});

test('tabs add to what others have written', () => {
  const place = placeOf();
  const [here, there] = [1, 2].map(
    () =>
      new Traffic(
        'key',
        () => place,
        () => NOON,
      ),
  );
  here?.note(1, 10);
  there?.note(2, 20);
  here?.write();
  there?.write();
  expect(here?.days().sent).toEqual([{ day: TODAY, bytes: 3 }]);
  expect(here?.days()).toEqual(there?.days());
});

test('days are told in order, and old ones are forgotten', () => {
  const place = placeOf();
  let now = NOON;
  const traffic = new Traffic(
    'key',
    () => place,
    () => now,
  );
  for (const day of [3, 0, 29, 30, 31]) {
    now = NOON + day * DAY * 1000;
    traffic.note(day + 1, 0);
    traffic.write();
  }
  const days = traffic.days().sent.map(({ day, bytes }) => [(day - TODAY) / DAY, bytes]);
  expect(days).toEqual([
    [3, 4],
    [29, 30],
    [30, 31],
    [31, 32],
  ]);
  expect(place.text).toBe(
    JSON.stringify(traffic.days().sent.map(({ day, bytes }) => [day, bytes, 0])),
  );
});

test('what is not ours, a place that is full and nobody signed in break nothing', () => {
  const texts = [
    '{',
    '7',
    '"x"',
    '[1]',
    '[[1,2]]',
    `[[${TODAY},-1,2]]`,
    `[["${TODAY}",1,2]]`,
    'null',
  ];
  for (const text of texts) {
    const place = placeOf(text);
    const traffic = new Traffic(
      'key',
      () => place,
      () => NOON,
    );
    expect(traffic.days(), text).toEqual({ sent: [], received: [] });
    traffic.note(1, 2);
    traffic.write();
    expect(place.text).toBe(JSON.stringify([[TODAY, 1, 2]]));
  }
  const full = { ...placeOf(), isFull: true };
  full.setItem = () => {
    throw new DOMException('it is full', 'QuotaExceededError');
  };
  const traffic = new Traffic(
    'key',
    () => full,
    () => NOON,
  );
  traffic.note(3, 4);
  traffic.write();
  expect(traffic.days().received).toEqual([{ day: TODAY, bytes: 4 }]);
  traffic.forget();
  expect(traffic.days().received).toEqual([]);
  const nobody = new Traffic(
    'key',
    () => null,
    () => NOON,
  );
  nobody.note(1, 1);
  nobody.write();
  expect(nobody.days().sent).toEqual([{ day: TODAY, bytes: 1 }]);
});

test('bodies are counted as they are sent, and the answer is handed on as it is', async () => {
  let sent = 0;
  const answer = new Response('answer', { status: 206 });
  const by = countingSent(
    (bytes) => (sent += bytes),
    () => Promise.resolve(answer),
  );
  expect(await by('/', { method: 'PUT', body: 'ü' })).toBe(answer);
  expect(sent).toBe(2);
  await by('/', { method: 'PUT', body: new Blob(['four']) });
  await by('/', { method: 'PUT', body: new Uint8Array(10) });
  await by('/');
  expect(sent).toBe(16);
  const lost = countingSent(
    (bytes) => (sent += bytes),
    () => Promise.reject(new TypeError('no connection')),
  );
  await expect(lost('/', { body: 'x' })).rejects.toThrow('no connection');
  expect(sent).toBe(16);
});

test('what the app consists of and what lies behind links is no traffic of who is signed in', () => {
  const at = (path: string) => isOfSession(`https://cloud.example.org${path}`);
  expect(at('/api/v1/workspaces/1/files/a%2Fb?version=2')).toBe(true);
  expect(at('/api/v1/public/secret/archive')).toBe(false);
  expect(at('/assets/index.js')).toBe(false);
});
