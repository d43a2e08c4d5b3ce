import { expect, test } from 'vitest';
import type { PoolWorker } from './pool.ts';
import type { Call, Reply } from './protocol.ts';
import { SealedWorkspace, type SealedSource, type SeenHead } from './sealed.ts';

/** A worker that answers when it is told, or at once what it is opened and ended by, and such calls. */
function workerThat(...atOnce: string[]) {
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const worker: PoolWorker = {
    postMessage: ({ name }: Call) => {
      asked.push(name);
      const answer = () => worker.onmessage?.call(worker as Worker, reply());
      const reply = () => new MessageEvent<Reply>('message', { data: answerOf(name) });
      if (['sealedOpen', 'end', ...atOnce].includes(name)) queueMicrotask(answer);
      else answers.push(answer);
    },
    terminate: () => undefined,
    onmessage: null,
    onerror: null,
  };
  return { worker, asked, answer: () => answers.shift()?.() };
}

const ANSWERS: Record<string, unknown> = {
  end: 0,
  sealedOpen: { name: 'Diary' },
  sealedFold: { count: 0, head: 4, mayWrite: true },
  sealedList: [],
};

const answerOf = (name: string) => ({ kind: 'answer', answer: ANSWERS[name] }) as Reply;

const source = {
  genesis: () => Promise.resolve(new Uint8Array()),
  entries: () => Promise.resolve(new Uint8Array()),
  async *lockedKeys() {
    yield await Promise.resolve({ generation: 1, bytes: new Uint8Array() });
  },
} as unknown as SealedSource;

function opened(worker: PoolWorker, seen?: SeenHead) {
  const device = { id: 'd', name: 'Firefox' };
  const what = { id: 'w', secret: 'passphrase', device, source, start: () => worker };
  return SealedWorkspace.open(seen ? { ...what, seen } : what);
}

test('what waits for its turn when the workspace is locked is not asked any more, and locking does not wait for it', async () => {
  const { worker, asked, answer } = workerThat();
  const open = await opened(worker);
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

test('a worker that has folded a history that is refused is asked for nothing of it', async () => {
  const { worker, asked } = workerThat('sealedFold');
  const seen: SeenHead = {
    get: () => ({ seq: 6, hash: 'hash' }),
    set: () => undefined,
    keys: () => 0,
    setKeys: () => undefined,
  };
  const open = await opened(worker, seen);
  const older = { code: 'older_history' };
  await expect(open.catchUp()).rejects.toMatchObject(older);
  await expect(open.search('plan', null, 10)).rejects.toMatchObject(older);
  await expect(open.list('folder')).rejects.toMatchObject(older);
  await expect(open.find('node')).rejects.toMatchObject(older);
  await expect(open.files.archiveSize('folder')).rejects.toMatchObject(older);
  const reader = open.files.read({ file: 'node' }).getReader();
  await expect(reader.read()).rejects.toMatchObject(older);
  expect(asked).toEqual(['sealedOpen', 'sealedFold']);
});
