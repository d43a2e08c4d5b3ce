import { expect, test, vi } from 'vitest';
import { SynclineClient } from './client.ts';
import { NoConnection, ProblemError } from './problem.ts';
import { putLockedKeys } from './sealed.ts';

function answering(...answers: (Response | Error)[]) {
  const asked: { url: string; init: RequestInit }[] = [];
  const fetch = vi.fn((url: string | URL | Request, init: RequestInit = {}) => {
    asked.push({ url: String(url), init });
    const answer = answers.shift() ?? new Error('no answer is left');
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  });
  return { asked, fetch: fetch as unknown as typeof globalThis.fetch };
}

function problem(status: number, code: string, headers: Record<string, string> = {}): Response {
  const body = JSON.stringify({ type: 'about:blank', title: 'T', detail: 'D', status, code });
  return new Response(body, {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  });
}

const json = (value: unknown, status = 200) => Response.json(value, { status });

test('the token of a login is shown with every request after it', async () => {
  const { asked, fetch } = answering(
    json({ token: 't0k', device_id: 'd', account: 'ada' }),
    json([]),
  );
  const client = new SynclineClient({ fetch });
  await client.login({ user: 'ada', password: 'p', device_name: 'test' });
  await client.workspaces();
  expect(new Headers(asked[0]?.init.headers).has('authorization')).toBe(false);
  expect(new Headers(asked[1]?.init.headers).get('authorization')).toBe('Bearer t0k');
});

test('nothing of a plain workspace is asked of one that is known to be encrypted, nor is the server believed', async () => {
  const plain = { id: 'w', mode: 'plain' };
  const { asked, fetch } = answering(
    json([plain, { id: 'v', mode: 'plain' }]),
    json(plain),
    json([{ ...plain, mode: 'sealed' }]),
    json({ entries: 1 }),
    json({ nodes: [], next: null }),
  );
  const client = new SynclineClient({ fetch, isSealed: (workspace) => workspace === 'w' });
  const upload = client.putFile('w', 'a', new Blob(['secret']));
  await expect(upload).rejects.toMatchObject({ code: 'sealed_workspace' });
  await expect(client.folder('w', '').next()).rejects.toMatchObject({ code: 'sealed_workspace' });
  await expect(client.beginUpload('w', 'a')).rejects.toThrow(ProblemError);
  expect(asked).toEqual([]);
  await expect(client.workspaces()).rejects.toMatchObject({ code: 'mislabelled' });
  await expect(client.workspace('w')).rejects.toMatchObject({ code: 'mislabelled' });
  expect(await client.workspaces()).toHaveLength(1);
  await client.ask('GET /workspaces/{workspace}/genesis', { params: { workspace: 'w' } });
  await client.folder('v', '').next();
  expect(asked).toHaveLength(5);
});

test('a folder of many pages is read to its end', async () => {
  const node = (name: string) => ({ name });
  const { asked, fetch } = answering(
    json({ nodes: [node('a')], next: 'a%20b' }),
    json({ nodes: [node('c')], next: null }),
  );
  const names: string[] = [];
  for await (const page of new SynclineClient({ fetch }).folder('w', 'x/y')) {
    names.push(...page.map(({ name }) => name));
  }
  expect(names).toEqual(['a', 'c']);
  expect(asked[0]?.url).toBe('/api/v1/workspaces/w/folders/x/y');
  expect(asked[1]?.url).toBe('/api/v1/workspaces/w/folders/x/y?start_after=a%2520b');
});

test('a problem document becomes an error with its code and the version that is there', async () => {
  const { fetch } = answering(problem(412, 'precondition_failed', { etag: '"e.1"' }));
  const error = await new SynclineClient({ fetch })
    .delete('w', 'a', { ifMatch: '"e.0"' })
    .catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ProblemError);
  expect(error).toMatchObject({ code: 'precondition_failed', etag: '"e.1"', message: 'D' });
});

test('conditions and times of files go into the headers', async () => {
  const { asked, fetch } = answering(json({}), json({}));
  const client = new SynclineClient({ fetch });
  const body = new Blob(['x']);
  await client.putFile('w', 'a', body, { condition: { ifAbsent: true }, modifiedMs: 1_500 });
  await client.putFile('w', 'a', body, { condition: { ifMatch: '"e.1"' } });
  const [first, second] = asked.map(({ init }) => new Headers(init.headers));
  expect(first?.get('if-none-match')).toBe('*');
  expect(first?.get('x-oc-mtime')).toBe('1.500');
  expect(second?.get('if-match')).toBe('"e.1"');
  expect(second?.has('x-oc-mtime')).toBe(false);
});

test('a token that the server does not know any more signs out, a wrong password does not', async () => {
  const onSignedOut = vi.fn();
  const { fetch } = answering(problem(401, 'wrong_password'), problem(401, 'not_signed_in'));
  const client = new SynclineClient({ fetch, onSignedOut, token: 't' });
  await expect(client.login({ user: 'ada', password: 'x', device_name: 'test' })).rejects.toThrow();
  expect(onSignedOut).not.toHaveBeenCalled();
  await expect(client.workspaces()).rejects.toThrow();
  expect(onSignedOut).toHaveBeenCalledOnce();
});

test('a server that is not reached, and a gateway that does not reach it, are no problems of the request', async () => {
  const { fetch } = answering(
    new TypeError('failed to fetch'),
    new Response('bad gateway', { status: 502 }),
    problem(503, 'unavailable', { 'retry-after': '3' }),
  );
  const client = new SynclineClient({ fetch });
  await expect(client.workspaces()).rejects.toBeInstanceOf(NoConnection);
  await expect(client.workspaces()).rejects.toBeInstanceOf(NoConnection);
  await expect(client.workspaces()).rejects.toMatchObject({ isPassing: true, retryAfter: 3 });
});

test('a node that is not there is nothing, and no error', async () => {
  const { fetch } = answering(problem(404, 'not_found'), problem(403, 'sealed_workspace'));
  const client = new SynclineClient({ fetch });
  expect(await client.node('w', 'a')).toBeNull();
  await expect(client.node('w', 'a')).rejects.toMatchObject({ code: 'sealed_workspace' });
});

test('locked keys that are there already are no failure, and other ones in their place are one', async () => {
  const key = `keys/${'1'.padStart(20, '0')}`;
  const there = (bytes: number[]) => [
    problem(412, 'precondition_failed'),
    json([{ key, size: 2 }]),
    new Response(Uint8Array.from(bytes)),
  ];
  const keys = { generation: 1, bytes: Uint8Array.from([1, 2]) };
  const { asked, fetch } = answering(json(null), ...there([1, 2]), ...there([1, 3]));
  const client = new SynclineClient({ fetch });
  await putLockedKeys(client, 'w', keys);
  expect(asked[0]?.url).toBe(`/api/v1/workspaces/w/objects/${key}`);
  expect(new Headers(asked[0]?.init.headers).get('if-none-match')).toBe('*');
  await putLockedKeys(client, 'w', keys);
  await expect(putLockedKeys(client, 'w', keys)).rejects.toThrow('other keys');
});

test('a part of a file begins where its answer says, whatever was asked for', async () => {
  const part = (said: Record<string, string>) =>
    new Response('part', { status: 206, headers: { etag: '"v1"', ...said } });
  const { asked, fetch } = answering(
    part({ 'content-range': 'bytes 7-10/11' }),
    part({ 'content-range': 'bytes 0-3/11' }),
    part({}),
    new Response('all of it', { headers: { etag: '"v2"' } }),
  );
  const client = new SynclineClient({ fetch });
  const from = { offset: 7, etag: '"v1"' };
  const beginnings: (number | undefined)[] = [];
  for (let at = 0; at < 4; at++) beginnings.push((await client.file('w', 'a', { from })).from);
  expect(beginnings).toEqual([7, 0, NaN, 0]);
  const headers = new Headers(asked[0]?.init.headers);
  expect([headers.get('range'), headers.get('if-range')]).toEqual(['bytes=7-', '"v1"']);
});
