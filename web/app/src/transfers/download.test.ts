import { fetchArchive, fetchArchiveLength, SynclineClient } from '@syncline/api';
import { expect, test, vi } from 'vitest';
import { discard, download, pickTarget } from './download.ts';

const signal = new AbortController().signal;

function bodyOf(...pieces: string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

async function run(size: number | null) {
  const [onProgress, onSize, save] = [vi.fn(), vi.fn(), vi.fn()];
  const read = () => Promise.resolve({ body: bodyOf('abc', 'de'), size });
  const job = { name: 'x.zip', read, target: null };
  const running = download(job, { onProgress, onSize }, signal, save);
  return { running, onProgress, onSize, save };
}

test('what comes is counted, and how much there is in all is told where the answer says so', async () => {
  const known = await run(5);
  await known.running;
  expect(known.onSize.mock.calls).toEqual([[5]]);
  expect(known.onProgress.mock.calls).toEqual([[3], [5]]);
  const unknown = await run(null);
  await unknown.running;
  expect(unknown.onSize).not.toHaveBeenCalled();
  expect(unknown.onProgress.mock.calls).toEqual([[3], [5]]);
  const [content, name] = unknown.save.mock.calls[0] as [Blob, string];
  expect([await content.text(), name]).toEqual(['abcde', 'x.zip']);
});

test('of a large file that nobody picked a place for is said that it may lie in memory, where the browser has no files', async () => {
  const piece = 'x'.repeat(8 * 1024 * 1024);
  const [onGathered, save] = [vi.fn(), vi.fn()];
  for (const count of [8, 7]) {
    const body = bodyOf(...Array.from({ length: count }, () => piece));
    const size = count * piece.length;
    const job = { name: 'film', read: () => Promise.resolve({ body, size }), target: null };
    await download(job, { onProgress: vi.fn(), onGathered }, signal, save);
    const [content] = save.mock.lastCall as [Blob];
    expect(content.size).toBe(size);
  }
  expect(onGathered).toHaveBeenCalledTimes(1);
});

test('an answer that broke off is not saved', async () => {
  const { running, save } = await run(6);
  await expect(running).rejects.toThrow('the server was not reached');
  expect(save).not.toHaveBeenCalled();
});

test('a download that broke off goes on where it was, and begins anew where it is another version', async () => {
  for (const [isSame, expected] of [
    [true, 'abcdef'],
    [false, 'xyz'],
  ] as const) {
    const save = vi.fn<(content: Blob, name: string) => void>();
    const asked: unknown[] = [];
    const read = (_: AbortSignal, from?: { offset: number; etag: string }) => {
      asked.push(from);
      if (!from) return Promise.resolve({ body: bodyOf('abc'), size: 6, from: 0, etag: '"1"' });
      return Promise.resolve(
        isSame
          ? { body: bodyOf('def'), size: 3, from: from.offset, etag: '"1"' }
          : { body: bodyOf('xyz'), size: 3, from: 0, etag: '"2"' },
      );
    };
    const job = { name: 'x', read, target: null, isResumable: true };
    const hooks = { onProgress: vi.fn() };
    await expect(download(job, hooks, signal, save)).rejects.toThrow('the server was not reached');
    await download(job, hooks, signal, save);
    expect(asked).toEqual([undefined, { offset: 3, etag: '"1"' }]);
    expect(save).toHaveBeenCalledTimes(1);
    expect(await save.mock.calls[0]?.[0].text()).toBe(expected);
  }
});

/** A file whose writes wait until they are let go, and fail after `room` bytes. */
class SlowFile {
  bytes = '';
  waiting: (() => void)[] = [];
  isSlow = false;
  isClosed = false;
  room = Infinity;

  async createWritable() {
    this.bytes = '';
    let isBroken = false;
    return {
      write: async (piece: Uint8Array) => {
        if (this.isSlow) await new Promise<void>((resolve) => this.waiting.push(resolve));
        // As a stream: what has failed once fails for good.
        isBroken ||= this.bytes.length + piece.length > this.room;
        if (isBroken) throw new DOMException('no room', 'QuotaExceededError');
        this.bytes += new TextDecoder().decode(piece);
      },
      truncate: () => Promise.resolve((this.bytes = '')),
      close: () => Promise.resolve((this.isClosed = true)),
      abort: () => Promise.resolve(),
    };
  }
}

const versionOf = (text: string) => (_: AbortSignal, start?: { offset: number }) => {
  const from = start?.offset ?? 0;
  const body = bodyOf(...(text.slice(from).match(/.{1,3}/g) ?? []));
  return Promise.resolve({ body, size: text.length - from, from, etag: '"1"' });
};

test('what goes on after a pause waits for what was still being written', async () => {
  const file = new SlowFile();
  const target = file as unknown as FileSystemFileHandle;
  const job = { name: 'x', read: versionOf('abcdefghi'), target, isResumable: true };
  const hooks = { onProgress: vi.fn() };
  const paused = new AbortController();
  file.isSlow = true;
  const first = download(job, hooks, paused.signal);
  await vi.waitFor(() => expect(file.waiting).toHaveLength(1));
  paused.abort();
  const second = download(job, hooks, signal);
  await new Promise((resolve) => setTimeout(resolve, 20));
  file.isSlow = false;
  for (const letGo of file.waiting) letGo();
  await expect(first).rejects.toThrow();
  await second;
  expect(file.bytes).toBe('abcdefghi');
});

test('a file that took no more is begun anew when there is room again', async () => {
  const file = new SlowFile();
  const target = file as unknown as FileSystemFileHandle;
  const job = { name: 'x', read: versionOf('abcdefghi'), target, isResumable: true };
  file.room = 7;
  const running = download(job, { onProgress: vi.fn() }, signal);
  await expect(running).rejects.toMatchObject({ name: 'QuotaExceededError' });
  file.room = Infinity;
  await download(job, { onProgress: vi.fn() }, signal);
  expect(file.bytes).toBe('abcdefghi');
});

test('what somebody gives up while its last piece is written becomes no file', async () => {
  const file = new SlowFile();
  const target = file as unknown as FileSystemFileHandle;
  const job = { name: 'x', read: versionOf('abc'), target };
  file.isSlow = true;
  const running = download(job, { onProgress: vi.fn() }, signal);
  await vi.waitFor(() => expect(file.waiting).toHaveLength(1));
  const given = discard(job);
  for (const letGo of file.waiting) letGo();
  await expect(running).rejects.toMatchObject({ name: 'AbortError' });
  await given;
  expect(file.isClosed).toBe(false);
});

test('what was paused between its last byte and its end is whole, and asks for nothing more', async () => {
  const read = vi.fn((stop: AbortSignal) => {
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('abc'));
        stop.addEventListener('abort', () => controller.error(stop.reason));
      },
    });
    return Promise.resolve({ body, size: 3, from: 0, etag: '"1"' });
  });
  const file = new SlowFile();
  const target = file as unknown as FileSystemFileHandle;
  const job = { name: 'x', read, target, isResumable: true };
  const [paused, onProgress] = [new AbortController(), vi.fn()];
  const first = download(job, { onProgress }, paused.signal);
  await vi.waitFor(() => expect(onProgress).toHaveBeenCalledWith(3));
  paused.abort();
  await expect(first).rejects.toMatchObject({ name: 'AbortError' });
  await download(job, { onProgress }, signal);
  expect(read).toHaveBeenCalledTimes(1);
  expect([file.bytes, file.isClosed]).toEqual(['abc', true]);
});

test('an answer that begins elsewhere than it was asked to is no part of the file', async () => {
  const read = () => Promise.resolve({ body: bodyOf('def'), size: null, from: 3, etag: '"1"' });
  const save = vi.fn();
  const running = download(
    { name: 'x', read, target: null },
    { onProgress: vi.fn() },
    signal,
    save,
  );
  await expect(running).rejects.toThrow('the server was not reached');
  expect(save).not.toHaveBeenCalled();
});

test('nobody is asked for a place where it is not known how much comes', async () => {
  expect(await pickTarget('x.zip', null)).toBeNull();
});

function clientOf(answer: () => Response) {
  const asked: string[] = [];
  const ask: typeof fetch = (address, init) => {
    asked.push(`${init?.method} ${address as string}`);
    return Promise.resolve(answer());
  };
  return { asked, client: new SynclineClient({ fetch: ask }) };
}

test('a folder is asked for as an archive, the root without a path, and its length before', async () => {
  const headers = { 'content-length': '3' };
  const { asked, client } = clientOf(() => new Response('zip', { headers }));
  expect(await fetchArchiveLength(client, 'w', 'a/b%20c')).toBe(3);
  const { body, size } = await fetchArchive(client, 'w', '', signal);
  expect([await new Response(body).text(), size]).toEqual(['zip', 3]);
  expect(asked).toEqual([
    'HEAD /api/v1/workspaces/w/archive/a/b%20c',
    'GET /api/v1/workspaces/w/archive',
  ]);
});

test('a length that is refused or not said is no length', async () => {
  const refused = clientOf(() => new Response(null, { status: 400 }));
  expect(await fetchArchiveLength(refused.client, 'w', 'a')).toBeNull();
  expect(await fetchArchiveLength(clientOf(() => new Response('')).client, 'w', 'a')).toBeNull();
});
