import { expect, test } from 'vitest';
import { SynclineClient } from './client.ts';
import { listen, readEvents } from './events.ts';

function stream(...parts: (string | Uint8Array)[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new Blob(parts as BlobPart[]).stream();
}

function slow(...parts: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
      controller.close();
    },
  });
}

const event = (seq: number) =>
  `id: ${seq}\nevent: entry\ndata: {"seq":${seq},"device_id":null,"changes":1}\n\n`;

test('events are found wherever the stream is cut', async () => {
  const text = `${event(1)}: still here\n\n${event(2)}`;
  for (let cut = 1; cut < text.length; cut += 7) {
    const found: string[] = [];
    for await (const data of readEvents(slow(text.slice(0, cut), text.slice(cut))))
      found.push(data);
    expect(found.filter((data) => data !== '')).toHaveLength(2);
  }
});

test('a stream that ends is asked for again, later and later, until it comes', async () => {
  const answers: (Response | Error)[] = [
    new Response(stream(event(1))),
    new TypeError('away'),
    new TypeError('away'),
    new Response(stream(event(2))),
  ];
  const fetch = () => {
    const answer = answers.shift() ?? new Error('over');
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const stop = new AbortController();
  const [seqs, waits, states]: [number[], number[], boolean[]] = [[], [], []];
  await listen(
    new SynclineClient({ fetch }),
    'w',
    {
      onEvent: ({ seq }) => seqs.push(seq),
      onState: (isConnected) => states.push(isConnected),
      random: () => 0.5,
      wait: (ms) => {
        waits.push(ms);
        if (answers.length === 0) stop.abort();
        return Promise.resolve();
      },
    },
    stop.signal,
  );
  expect(seqs).toEqual([1, 2]);
  expect(waits).toEqual([1000, 2000, 4000, 1000]);
  expect(states).toEqual([true, false, false, false, true, false]);
});

test('nobody asks again for a workspace that is closed to them', async () => {
  const body = JSON.stringify({ code: 'not_found', status: 404, title: '', detail: '', type: '' });
  const headers = { 'content-type': 'application/problem+json' };
  const fetch = () => Promise.resolve(new Response(body, { status: 404, headers }));
  const onEvent = () => undefined;
  await listen(new SynclineClient({ fetch }), 'w', { onEvent }, new AbortController().signal);
});
