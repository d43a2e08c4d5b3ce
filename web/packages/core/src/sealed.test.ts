import { expect, test } from 'vitest';
import type { PoolWorker } from './pool.ts';
import type { Call, Reply } from './protocol.ts';
import { SealedWorkspace, type SealedSource } from './sealed.ts';

/** A worker that answers when it is told, or at once what it is opened and ended by. */
function workerThat() {
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const worker: PoolWorker = {
    postMessage: ({ name }: Call) => {
      asked.push(name);
      const answer = () => worker.onmessage?.call(worker as Worker, reply());
      const reply = () => new MessageEvent<Reply>('message', { data: answerOf(name) });
      if (['sealedOpen', 'end'].includes(name)) queueMicrotask(answer);
      else answers.push(answer);
    },
    terminate: () => undefined,
    onmessage: null,
    onerror: null,
  };
  return { worker, asked, answer: () => answers.shift()?.() };
}

const answerOf = (name: string) =>
  ({ kind: 'answer', answer: name === 'end' ? 0 : { name: 'Diary' } }) as unknown as Reply;

const source = {
  genesis: () => Promise.resolve(new Uint8Array()),
  async *lockedKeys() {
    yield await Promise.resolve({ generation: 1, bytes: new Uint8Array() });
  },
} as unknown as SealedSource;

test('what waits for its turn when the workspace is locked is not asked any more, and locking does not wait for it', async () => {
  const { worker, asked, answer } = workerThat();
  const open = await SealedWorkspace.open({
    ...{ id: 'w', secret: 'passphrase', source, start: () => worker },
    device: { id: 'd', name: 'Firefox' },
  });
  const lists = Array.from({ length: 100 }, () => open.list('folder'));
  const late = lists.slice(1).map((list) => expect(list).rejects.toMatchObject({ code: 'locked' }));
  await new Promise((resolve) => setTimeout(resolve));
  const locking = open.lock();
  answer();
  await lists[0];
  await Promise.all([locking, ...late]);
  expect(asked).toEqual(['sealedOpen', 'sealedList', 'end']);
  await expect(open.list('folder')).rejects.toMatchObject({ code: 'locked' });
});
