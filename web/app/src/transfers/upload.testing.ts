// A server and hooks for tests of uploads.

import { ProblemError, type Node, type SynclineClient } from '@syncline/api';
import { expect, vi } from 'vitest';
import { PIECE_LENGTH } from './pieces.ts';
import type { UploadJob } from './upload.ts';

export const MODIFIED_MS = 1_700_000_000_500;
export const large = new Blob([new Uint8Array(2 * PIECE_LENGTH + 5)]);
export const small = new Blob(['small']);

export function problem(status: number, code: string, etag: string | null = null): ProblemError {
  return new ProblemError({ type: '', title: '', detail: '', status, code }, etag);
}

export function job(file: Blob, more: Partial<UploadJob> = {}): UploadJob {
  const condition = { ifAbsent: true } as const;
  return {
    workspace: 'w',
    path: 'a',
    file,
    modifiedMs: MODIFIED_MS,
    condition,
    upload: null,
    delta: null,
    ...more,
  };
}

export function nodeOf(file: Blob): Node {
  const modified = Math.floor(MODIFIED_MS / 1000);
  return { id: 'n', etag: '"n.1"', size: file.size, modified } as Node;
}

/** A server that keeps what arrives; each method may be made to fail before or after it does its work. */
export function fakeServer() {
  const uploads = new Map<string, number>();
  let files: Node | null = null;
  let next = 0;
  const failures: { at: string; error: Error; isAfter?: boolean }[] = [];
  const pieces: number[] = [];
  const maybe = <T>(at: string, work: () => T): Promise<T> => {
    const found = failures.findIndex((failure) => failure.at === at);
    const [failure] = found < 0 ? [] : failures.splice(found, 1);
    if (failure && !failure.isAfter) return Promise.reject(failure.error);
    try {
      const done = work();
      return failure ? Promise.reject(failure.error) : Promise.resolve(done);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  };
  const put = (size: number, ifAbsent: boolean): Node => {
    if (files && ifAbsent) throw problem(412, 'precondition_failed', files.etag);
    files = { ...nodeOf(large), size };
    return files;
  };
  const offsetOf = (id: string) => {
    const offset = uploads.get(id);
    if (offset === undefined) throw problem(404, 'not_found');
    return { id, path: 'a', offset, expires_in: 1 };
  };
  const client = {
    node: () => maybe('node', () => files),
    putFile: (_w: string, _p: string, body: Blob, options: UploadJob) =>
      maybe('put', () => put(body.size, 'ifAbsent' in (options.condition ?? {}))),
    beginUpload: () =>
      maybe('begin', () => {
        const id = `u${next++}`;
        uploads.set(id, 0);
        return offsetOf(id);
      }),
    describeUpload: (_w: string, id: string) => maybe('describe', () => offsetOf(id)),
    endUpload: (_w: string, id: string) => maybe('end', () => void uploads.delete(id)),
    continueUpload: (_w: string, id: string, offset: number, body: Blob) =>
      maybe('piece', () => {
        expect(offset).toBe(offsetOf(id).offset);
        pieces.push(offset);
        uploads.set(id, offset + body.size);
        return offsetOf(id);
      }),
    commitUpload: (_w: string, id: string, options: UploadJob) =>
      maybe('commit', () => {
        const made = put(offsetOf(id).offset, 'ifAbsent' in (options.condition ?? {}));
        uploads.delete(id);
        return made;
      }),
  };
  return {
    client: client as unknown as SynclineClient,
    pieces,
    failures,
    uploads,
    has: (node: Node | null) => (files = node),
  };
}

export function hooks() {
  const progress: number[] = [];
  return {
    progress,
    onProgress: (sent: number) => progress.push(sent),
    onConnection: vi.fn(),
    wait: vi.fn(() => Promise.resolve()),
    isSent: (_client: SynclineClient, { file }: UploadJob, node: Node) =>
      Promise.resolve(node.size === file.size),
    digest: () => Promise.resolve('digest'),
    digestLater: () => Promise.resolve('digest'),
  };
}
