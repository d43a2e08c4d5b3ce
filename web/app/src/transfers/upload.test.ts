import { NoConnection, type Node } from '@syncline/api';
import { expect, test, vi } from 'vitest';
import { DeltaEnded, PIECE_LENGTH } from './pieces.ts';
import { FileChanged } from './as-chosen.ts';
import { NameClash, upload } from './upload.ts';
import { fakeServer, hooks, job, large, nodeOf, problem, small } from './upload.testing.ts';

const signal = new AbortController().signal;
const away = () => new NoConnection('away');

test('a small file goes in one request, a large one in pieces', async () => {
  const server = fakeServer();
  const seen = hooks();
  await upload(server.client, job(small), seen, signal);
  expect(server.pieces).toEqual([]);
  server.has(null);
  await upload(server.client, job(large), seen, signal);
  expect(server.pieces).toEqual([0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
  expect(seen.progress.at(-1)).toBe(large.size);
});

test('after a broken connection a large file goes on where the server has it', async () => {
  const server = fakeServer();
  server.failures.push({ at: 'piece', error: away() });
  server.failures.push({ at: 'piece', error: away(), isAfter: true });
  const seen = hooks();
  await upload(server.client, job(large), seen, signal);
  expect(server.pieces).toEqual([0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
  expect(seen.onConnection).toHaveBeenCalledWith(false);
});

test('a file whose last answer was lost is found, and no clash with itself', async () => {
  for (const [at, file] of [
    ['put', small],
    ['commit', large],
  ] as const) {
    const server = fakeServer();
    server.failures.push({ at, error: away(), isAfter: true });
    const node = await upload(server.client, job(file), hooks(), signal);
    expect(node.size).toBe(file.size);
  }
});

test('while the line is bad nobody knows what lies there, and who asks waits for it', async () => {
  const [gone, failed] = [problem(404, 'not_found'), problem(412, 'precondition_failed')];
  for (const [at, file, error] of [
    ['put', small, failed],
    ['commit', large, gone],
  ] as const) {
    const server = fakeServer();
    server.failures.push({ at, error, isAfter: true });
    const seen = hooks();
    const isSent = vi.fn(seen.isSent);
    // One question is not answered, nor is what is asked of its answer.
    isSent.mockImplementationOnce(() => {
      server.failures.push({ at: 'node', error: away() });
      return Promise.reject(away());
    });
    const node = await upload(server.client, job(file), { ...seen, isSent }, signal);
    expect(node.size).toBe(file.size);
    expect(isSent).toHaveBeenCalledTimes(2);
    expect(seen.onConnection.mock.calls).toEqual([[false], [true], [false], [true]]);
    expect(seen.wait).toHaveBeenCalledTimes(2);
  }
});

test('what lies there and was not sent is a clash also after a bad line', async () => {
  const server = fakeServer();
  server.has({ ...nodeOf(small), size: 1_000 });
  server.failures.push({ at: 'node', error: away() });
  const seen = hooks();
  const clash = upload(server.client, job(small), seen, signal);
  await expect(clash).rejects.toThrow(new NameClash('"n.1"'));
  expect(seen.wait).toHaveBeenCalledTimes(1);
});

test('a line that stays bad while somebody asks ends the upload after a while', async () => {
  const server = fakeServer();
  server.failures.push({ at: 'put', error: problem(412, 'precondition_failed'), isAfter: true });
  const seen = { ...hooks(), isSent: () => Promise.reject(away()) };
  await expect(upload(server.client, job(small), seen, signal)).rejects.toThrow(NoConnection);
  expect(seen.wait.mock.calls.length).toBe(4);
});

test('a request that the browser has sent again by itself is no clash with what it has sent', async () => {
  const [gone, failed] = [problem(404, 'not_found'), problem(412, 'precondition_failed')];
  for (const [at, file, error] of [
    ['put', small, failed],
    ['commit', large, gone],
  ] as const) {
    const server = fakeServer();
    server.failures.push({ at, error, isAfter: true });
    const seen = hooks();
    expect((await upload(server.client, job(file), seen, signal)).size).toBe(file.size);
    expect(seen.wait).not.toHaveBeenCalled();
    server.failures.push({ at, error, isAfter: true });
    server.has(null);
    const others = { ...hooks(), isSent: () => Promise.resolve(false) };
    await expect(upload(server.client, job(file), others, signal)).rejects.toThrow(NameClash);
  }
});

test('another file of the same name is a clash, for a large file before anything is sent', async () => {
  for (const file of [small, large]) {
    const server = fakeServer();
    server.has(nodeOf(new Blob(['another'])));
    const error = await upload(server.client, job(file), hooks(), signal).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(NameClash);
    expect(error).toMatchObject({ etag: '"n.1"' });
    expect(server.pieces).toEqual([]);
  }
});

test('an upload that the server does not know any more begins anew', async () => {
  const server = fakeServer();
  await upload(server.client, job(large, { upload: 'forgotten' }), hooks(), signal);
  expect(server.pieces).toEqual([0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
});

test('what cannot pass is not tried again, and what does not pass is given up', async () => {
  const server = fakeServer();
  server.failures.push({ at: 'put', error: problem(507, 'over_quota') });
  const seen = hooks();
  await expect(upload(server.client, job(small), seen, signal)).rejects.toMatchObject({
    code: 'over_quota',
  });
  expect(seen.wait).not.toHaveBeenCalled();
  for (let time = 0; time < 20; time++) server.failures.push({ at: 'put', error: away() });
  await expect(upload(server.client, job(small), seen, signal)).rejects.toBeInstanceOf(
    NoConnection,
  );
  expect(seen.wait).toHaveBeenCalledTimes(5);
});

test('an upload that was cut off here waits until the server has taken in what was on its way', async () => {
  const server = fakeServer();
  const begun = vi.fn();
  const paused = new AbortController();
  server.failures.push({ at: 'piece', error: away(), isAfter: true });
  const one = job(large);
  const cut = { ...hooks(), onBegun: begun, wait: () => Promise.resolve(paused.abort()) };
  await expect(upload(server.client, one, cut, paused.signal)).rejects.toThrow('abort');
  expect(begun.mock.calls).toEqual([
    [{ upload: 'u0', digest: null }],
    [{ upload: 'u0', digest: 'digest' }],
  ]);
  server.failures.push({ at: 'describe', error: problem(409, 'conflict') });
  await upload(server.client, one, hooks(), signal);
  expect(server.pieces).toEqual([0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
});

test('an upload that was cut off while it was put is found to be there', async () => {
  const server = fakeServer();
  server.has(nodeOf(large));
  const lost = job(large, { upload: 'gone' });
  expect((await upload(server.client, lost, hooks(), signal)).size).toBe(large.size);
  expect(server.pieces).toEqual([]);
});

test('a large file that replaces another one is sent as what has changed, and whole where that is not less', async () => {
  const over = { condition: { ifMatch: '"n.1"' } } as const;
  for (const isSent of [true, false]) {
    const server = fakeServer();
    server.failures.push({ at: 'piece', error: away() });
    const sendDelta = vi.fn(() => Promise.resolve(isSent ? nodeOf(large) : null));
    const node = await upload(server.client, job(large, over), { ...hooks(), sendDelta }, signal);
    expect(node.size).toBe(large.size);
    expect(sendDelta).toHaveBeenCalledTimes(1);
    expect(server.pieces.length).toBe(isSent ? 0 : 3);
  }
  const sendDelta = vi.fn();
  for (const one of [job(large), job(small, over)]) {
    await upload(fakeServer().client, one, { ...hooks(), sendDelta }, signal);
  }
  expect(sendDelta).not.toHaveBeenCalled();
});

test('a file that has changed since it was chosen is not tried again, and no failure of the network', async () => {
  const server = fakeServer();
  server.failures.push({ at: 'piece', error: away() });
  const changed = new Blob([new Uint8Array(2 * PIECE_LENGTH)]);
  const refuse = () => Promise.reject(new DOMException('it has changed', 'NotReadableError'));
  const slice = changed.slice.bind(changed);
  changed.slice = (...range) => Object.assign(slice(...range), { arrayBuffer: refuse });
  const called = hooks();
  await expect(upload(server.client, job(changed), called, signal)).rejects.toThrow(FileChanged);
  expect(called.wait).not.toHaveBeenCalled();
});

test.each([
  ['large', 2 * PIECE_LENGTH + 5, 'piece'],
  ['small', 5, 'read'],
])(
  'a %s file that is saved while its last bytes are on their way is not put',
  async (_, size, at) => {
    const server = fakeServer();
    const file = new Blob([new Uint8Array(size)]);
    let isSaved = at === 'read';
    const refuse = () => Promise.reject(new DOMException('it has changed', 'NotReadableError'));
    const slice = file.slice.bind(file);
    file.slice = (start = 0, end = size) => {
      const part = slice(start, end);
      const refused = isSaved ? Object.assign(part, { arrayBuffer: refuse }) : part;
      // The last piece was opened before, and is read meanwhile.
      if (end >= size) isSaved = true;
      return refused;
    };
    await expect(upload(server.client, job(file), hooks(), signal)).rejects.toThrow(FileChanged);
    expect(await server.client.node('w', 'a')).toBeNull();
    expect(server.uploads.size).toBe(0);
  },
);

test('an upload is gone on with by the same content only, also where length and time are the same', async () => {
  for (const [known, pieces] of [
    ['digest', [PIECE_LENGTH, 2 * PIECE_LENGTH]],
    ['of another content', [0, PIECE_LENGTH, 2 * PIECE_LENGTH]],
    [null, [0, PIECE_LENGTH, 2 * PIECE_LENGTH]],
  ] as const) {
    const server = fakeServer();
    server.uploads.set('u', PIECE_LENGTH);
    const one = job(large, { upload: 'u', digest: known });
    await upload(server.client, one, hooks(), signal);
    expect(server.pieces, String(known)).toEqual(pieces);
    expect(server.uploads.size).toBe(0);
  }
});

test('in the page in which it began an upload goes on also where nobody knows yet what the file is', async () => {
  const server = fakeServer();
  const paused = new AbortController();
  server.failures.push({ at: 'piece', error: away(), isAfter: true });
  const one = job(large);
  const wait = () => Promise.resolve(paused.abort());
  // It takes longer to read all of it than until somebody pauses it.
  const digestLater = () => new Promise<string>(() => undefined);
  const cut = upload(server.client, one, { ...hooks(), wait, digestLater }, paused.signal);
  await expect(cut).rejects.toThrow('abort');
  await upload(server.client, one, hooks(), signal);
  expect(server.pieces).toEqual([0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
});

test('where it is known what the file was it is looked at after each pause, also in the page in which it began', async () => {
  const server = fakeServer();
  const paused = new AbortController();
  server.failures.push({ at: 'piece', error: away(), isAfter: true });
  const one = job(large);
  const wait = () => Promise.resolve(paused.abort());
  const cut = upload(server.client, one, { ...hooks(), wait }, paused.signal);
  await expect(cut).rejects.toThrow('abort');
  // A container that was mounted meanwhile has the same length and time, and another content.
  const digest = () => Promise.resolve('of another content');
  await upload(server.client, one, { ...hooks(), digest }, signal);
  expect(server.pieces).toEqual([0, 0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
});

test('folders that cannot be made while the line is bad are made when it is back', async () => {
  const server = fakeServer();
  const prepare = vi.fn().mockRejectedValueOnce(away()).mockResolvedValue(undefined);
  await upload(server.client, job(small), { ...hooks(), prepare }, signal);
  expect(prepare).toHaveBeenCalledTimes(2);
  expect(await server.client.node('w', 'a')).not.toBeNull();
});

test('behind four gibibytes an upload goes on where the server has it', async () => {
  const [size, offset] = [2 ** 32 + PIECE_LENGTH + 7, 2 ** 32 + 5];
  const cut: [number, number][] = [];
  const slice = (start = 0, end = 0) => {
    // The look whether it is as it was.
    if (end > 1) cut.push([start, Math.min(end, size)]);
    const arrayBuffer = () => Promise.resolve(new ArrayBuffer(0));
    return { size: Math.min(end, size) - start, arrayBuffer } as Blob;
  };
  const server = fakeServer();
  server.uploads.set('u', offset);
  const file = { size, slice } as Blob;
  const node = await upload(
    server.client,
    job(file, { upload: 'u', digest: 'digest' }),
    hooks(),
    signal,
  );
  expect(cut).toEqual([
    [offset, offset + PIECE_LENGTH],
    [offset + PIECE_LENGTH, size],
  ]);
  expect(node.size).toBe(size);
});

test('what the server is still putting is waited for, and another conflict is told', async () => {
  const server = fakeServer();
  const conflict = problem(409, 'conflict');
  server.failures.push({ at: 'commit', error: conflict }, { at: 'describe', error: conflict });
  const waiting = hooks();
  const node = await upload(server.client, job(large), waiting, signal);
  expect(node.size).toBe(large.size);
  expect(waiting.wait).toHaveBeenCalledExactlyOnceWith(2000, signal);
  expect(server.pieces).toEqual([0, PIECE_LENGTH, 2 * PIECE_LENGTH]);
  server.failures.push({ at: 'commit', error: conflict }, { at: 'commit', error: conflict });
  server.has(null);
  await expect(upload(server.client, job(large), hooks(), signal)).rejects.toBe(conflict);
});

test('where the server does not know a delta any more it is looked whether that was put before anything is sent', async () => {
  for (const isPut of [true, false]) {
    const server = fakeServer();
    server.has(nodeOf(large));
    const one = job(large, { condition: { ifMatch: '"n.0"' } });
    const sendDelta = vi
      .fn<() => Promise<Node>>()
      .mockRejectedValueOnce(new DeltaEnded(problem(404, 'not_found')))
      .mockResolvedValueOnce(nodeOf(large));
    const isSent = () => Promise.resolve(isPut);
    await upload(server.client, one, { ...hooks(), sendDelta, isSent }, signal);
    expect(sendDelta).toHaveBeenCalledTimes(isPut ? 1 : 2);
    expect(server.pieces).toEqual([]);
  }
});

test('a delta that ends at the server again and again is told', async () => {
  const server = fakeServer();
  const ended = new DeltaEnded(problem(404, 'not_found'));
  const sendDelta = vi.fn<() => Promise<Node>>().mockRejectedValue(ended);
  const one = job(large, { condition: { ifMatch: '"n.0"' } });
  const sending = upload(server.client, one, { ...hooks(), sendDelta }, signal);
  await expect(sending).rejects.toBe(ended);
  expect(sendDelta.mock.calls.length).toBeLessThan(12);
});
