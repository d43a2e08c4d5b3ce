import { expect, test, vi } from 'vitest';
import { CoreError } from './error.ts';
import { SealedHistory, type SealedCall } from './sealed-history.ts';
import type { SealedSource, SeenHead } from './sealed.ts';

const hashOf = (seq: number) => `hash of ${String(seq)}`;

/** A browser that keeps how far the log was read, for all of its tabs. */
function seenAt(seq: number) {
  let kept = { seq, hash: hashOf(seq) as string | null };
  const seen: SeenHead = {
    get: () => kept,
    set: (seq, hash) => (kept = { seq, hash }),
    keys: () => 0,
    setKeys: () => undefined,
  };
  return seen;
}

/** A worker that answers as it is told, and a server that is asked for entries behind some number. */
function history(seen: SeenHead, answer: (name: string) => unknown) {
  const entries = vi.fn<SealedSource['entries']>(() => Promise.resolve(new Uint8Array()));
  const call = ((name: string, ask: { seq?: number } | null) => {
    if (name === 'sealedHash') return Promise.resolve(hashOf(ask?.seq ?? 0));
    return Promise.resolve().then(() => answer(name));
  }) as SealedCall;
  const source = { entries } as unknown as SealedSource;
  return { entries, made: new SealedHistory(source, seen, call) };
}

test('another tab that reads on meanwhile is no older history, and what it has kept stays', async () => {
  const seen = seenAt(4);
  const { made } = history(seen, () => {
    // An entry has come behind the answer of the server, and another tab has read it.
    seen.set(5, hashOf(5));
    return { count: 0, head: 4, mayWrite: true };
  });
  await made.catchUp();
  expect(made.head).toBe(4);
  expect(seen.get()).toEqual({ seq: 5, hash: hashOf(5) });
  // What was kept before the server was asked is an older one.
  await expect(made.catchUp()).rejects.toMatchObject({ code: 'older_history' });
});

test('behind an entry that is refused in the midst of others it is asked for that one again', async () => {
  const message = 'the keys are older';
  const refusal = new CoreError({ code: 'unknown_epoch', message, isRetryable: false });
  const { made, entries } = history(seenAt(0), (name) => {
    if (name === 'sealedHead') return 3;
    throw refusal;
  });
  await expect(made.catchUp()).rejects.toBe(refusal);
  await expect(made.catchUp()).rejects.toBe(refusal);
  expect(entries.mock.calls.map(([since]) => since)).toEqual([0, 3]);
});

test('of a history that was refused nothing is told until one is the one that was read before', async () => {
  const seen = seenAt(6);
  let head = 4;
  const { made } = history(seen, () => ({ count: 0, head, mayWrite: true }));
  made.check('sealedSearch');
  await expect(made.catchUp()).rejects.toMatchObject({ code: 'older_history' });
  for (const name of ['sealedSearch', 'sealedList', 'sealedFind', 'sealedBegin'] as const) {
    expect(() => made.check(name)).toThrow('the history ends at entry 4');
  }
  // It is read on all the same, and what is begun is ended.
  for (const name of ['sealedFold', 'sealedHash', 'sealedEnd'] as const) made.check(name);
  head = 6;
  await made.catchUp();
  made.check('sealedSearch');

  seen.set(6, 'hash of another entry');
  await expect(made.catchUp()).rejects.toMatchObject({ code: 'other_history' });
  expect(() => made.check('sealedSearch')).toThrow('entry 6 is not the one');
  // Somebody says that the server was set back.
  seen.set(0, hashOf(0));
  await made.catchUp();
  made.check('sealedSearch');
  expect(seen.get()).toEqual({ seq: 6, hash: hashOf(6) });
});

test('a comparison that fails for another reason leaves it refused', async () => {
  let [head, isAway] = [4, false];
  const { made } = history(seenAt(6), () => {
    if (isAway) throw new Error('away');
    return { count: 0, head, mayWrite: true };
  });
  await expect(made.catchUp()).rejects.toMatchObject({ code: 'older_history' });
  [head, isAway] = [6, true];
  await expect(made.catchUp()).rejects.toThrow('away');
  expect(() => made.check('sealedList')).toThrow('the history ends at entry 4');
});
