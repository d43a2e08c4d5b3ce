import { answerOf, rangeOf, type FileAnswer, type Reading } from './content.ts';
import { Guard } from './guard.ts';
import { NoConnection, ProblemError } from './problem.ts';
import type { NodePath } from './path.ts';
import type { FolderPage, Login, Node, Operations, Session, Upload, Versions } from './schema.ts';

/** When a change shall happen: only over the version that is named, or only where nothing is. */
export type Condition = { ifMatch: string } | { ifAbsent: true } | undefined;

export interface ClientOptions {
  /** Where the server is; the page's own by default. */
  base?: string;
  token?: string | null;
  /** Is told when the server does not know the token any more. */
  onSignedOut?: () => void;
  /** Whether a workspace is known to be encrypted: nothing of a plain one is asked of it or sent to it then. */
  isSealed?: (workspace: string) => boolean;
  fetch?: typeof fetch;
}

/** Bad gateway, unavailable, timeout of a gateway. */
const BETWEEN = [502, 503, 504];

interface Asking<Body> {
  params?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  body?: Body;
  signal?: AbortSignal | undefined;
  /** Whether it is sent although the page goes away. */
  isLast?: boolean;
}

/** Says a condition in the words of HTTP. */
export function headersOf(condition: Condition): Record<string, string> {
  if (!condition) return {};
  return 'ifMatch' in condition ? { 'if-match': condition.ifMatch } : { 'if-none-match': '*' };
}

/** Says when a file was changed. */
export function timeOf(modifiedMs: number | undefined): Record<string, string> {
  return modifiedMs === undefined ? {} : { 'x-oc-mtime': (modifiedMs / 1000).toFixed(3) };
}

/** Asks a server. Every method is one request, and throws [ProblemError] or [NoConnection]. */
export class SynclineClient {
  readonly #base: string;
  readonly #fetch: typeof fetch;
  readonly #onSignedOut: () => void;
  readonly #guard: Guard;
  token: string | null;

  constructor(options: ClientOptions = {}) {
    this.#base = `${options.base ?? ''}/api/v1`;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#onSignedOut = options.onSignedOut ?? (() => undefined);
    this.#guard = new Guard(options.isSealed ?? (() => false));
    this.token = options.token ?? null;
  }

  /** Sends a request of the document and returns the answer as it is. */
  async ask<Name extends keyof Operations & string>(
    name: Name,
    asking: Asking<Operations[Name]['body']> = {},
  ): Promise<Response> {
    const [method = 'GET', template = ''] = name.split(' ');
    const params = asking.params ?? {};
    this.#guard.check(template, params.workspace);
    const path = template.replace(/\{(\w+)\}/g, (_, key: string) => params[key] ?? '');
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(asking.query ?? {})) {
      if (value !== undefined) query.set(key, String(value));
    }
    const headers = new Headers(asking.headers);
    const { token } = this;
    if (token) headers.set('authorization', `Bearer ${token}`);
    const isRaw = asking.body instanceof Blob || asking.body instanceof Uint8Array;
    if (asking.body && !isRaw) headers.set('content-type', 'application/json');
    const init: RequestInit = { method, headers, cache: 'no-store', credentials: 'omit' };
    if (asking.body) init.body = isRaw ? (asking.body as BodyInit) : JSON.stringify(asking.body);
    if (asking.isLast) init.keepalive = true;
    if (asking.signal) init.signal = asking.signal;
    const address = `${this.#base}${path}${query.size > 0 ? `?${query}` : ''}`;
    const response = await this.#send(address, init);
    if (response.ok) return response;
    // What stands before the server did not reach it.
    const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json');
    if (BETWEEN.includes(response.status) && !isProblem) throw new NoConnection(response.status);
    const error = await ProblemError.of(response);
    // An answer that comes late may be about a session before this one.
    if (error.code === 'not_signed_in' && token && token === this.token) this.#onSignedOut();
    throw error;
  }

  async #send(address: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#fetch(address, init);
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new NoConnection(error);
    }
  }

  async #json<Name extends keyof Operations & string>(
    name: Name,
    asking: Asking<Operations[Name]['body']> = {},
  ): Promise<Operations[Name]['answer']> {
    const response = await this.ask(name, asking);
    if (response.status === 204) return undefined as Operations[Name]['answer'];
    try {
      return (await response.json()) as Operations[Name]['answer'];
    } catch (error) {
      if (asking.signal?.aborted) throw error;
      throw new NoConnection(error);
    }
  }

  /** Sends a request of the document and returns its answer, for what has no method of its own here. */
  call<Name extends keyof Operations & string>(
    name: Name,
    asking: Asking<Operations[Name]['body']> = {},
  ): Promise<Operations[Name]['answer']> {
    return this.#json(name, asking);
  }

  /** Signs in and keeps the token. */
  async login(login: Login): Promise<Session> {
    const session = await this.#json('POST /login', { body: login });
    this.token = session.token;
    return session;
  }

  /** Ends the session, also where the page goes away meanwhile. */
  async logout(): Promise<void> {
    await this.#json('POST /logout', { isLast: true });
    this.token = null;
  }

  whoAmI() {
    return this.#json('GET /whoami');
  }

  async workspaces() {
    return (await this.#json('GET /workspaces')).map((one) => this.#guard.believed(one));
  }

  async workspace(workspace: string) {
    const params = { workspace };
    const found = await this.#json('GET /workspaces/{workspace}', { params });
    return this.#guard.believed({ ...found, id: workspace });
  }

  /** Reads a folder page by page, 1,000 nodes at most in each. */
  async *folder(workspace: string, path: NodePath, signal?: AbortSignal): AsyncGenerator<Node[]> {
    let start: string | undefined;
    do {
      const page: FolderPage = await this.#folderPage(workspace, path, start, signal);
      yield page.nodes;
      start = page.next ?? undefined;
    } while (start !== undefined);
  }

  #folderPage(workspace: string, path: NodePath, start?: string, signal?: AbortSignal) {
    const query = { start_after: start };
    return path === ''
      ? this.#json('GET /workspaces/{workspace}/folders', { params: { workspace }, query, signal })
      : this.#json('GET /workspaces/{workspace}/folders/{path}', {
          params: { workspace, path },
          query,
          signal,
        });
  }

  /** Describes a node, or returns nothing where none is. */
  async node(workspace: string, path: NodePath, signal?: AbortSignal): Promise<Node | null> {
    try {
      const params = { workspace, path };
      return await this.#json('GET /workspaces/{workspace}/nodes/{path}', { params, signal });
    } catch (error) {
      if (error instanceof ProblemError && error.code === 'not_found') return null;
      throw error;
    }
  }

  makeFolder(workspace: string, path: NodePath, signal?: AbortSignal) {
    const params = { workspace, path };
    return this.#json('PUT /workspaces/{workspace}/folders/{path}', { params, signal });
  }

  move(workspace: string, from: NodePath, to: NodePath, condition?: Condition) {
    return this.#json('POST /workspaces/{workspace}/move', {
      params: { workspace },
      headers: headersOf(condition),
      body: { from, to, overwrite: false },
    });
  }

  delete(workspace: string, path: NodePath, condition?: Condition) {
    const params = { workspace, path };
    const headers = headersOf(condition);
    return this.#json('DELETE /workspaces/{workspace}/files/{path}', { params, headers });
  }

  /** Brings a version back, also of a node that was deleted; without one what it was when it was deleted, and what was deleted with it. */
  restore(workspace: string, node: string, version?: number) {
    const body = version === undefined ? { node } : { node, version };
    return this.#json('POST /workspaces/{workspace}/restore', { params: { workspace }, body });
  }

  /** Returns all versions of a node, oldest first. */
  async versions(workspace: string, path: NodePath, signal?: AbortSignal): Promise<Versions> {
    const all: Versions = { node: '', versions: [], next: null };
    let cursor: string | undefined;
    do {
      const page: Versions = await this.#json('GET /workspaces/{workspace}/versions/{path}', {
        params: { workspace, path },
        query: { cursor },
        signal,
      });
      all.node = page.node;
      all.versions.push(...page.versions);
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    return all;
  }

  /** Asks for the content of a file, or of an older version of it; from a place on, where it is still the same version. */
  async file(workspace: string, path: NodePath, options: Reading = {}): Promise<FileAnswer> {
    const response = await this.ask('GET /workspaces/{workspace}/files/{path}', {
      params: { workspace, path },
      query: { version: options.version },
      headers: rangeOf(options.from),
      signal: options.signal,
    });
    return answerOf(response, options.from);
  }

  /** Puts a file in one request. */
  putFile(
    workspace: string,
    path: NodePath,
    body: Blob,
    options: { condition?: Condition; modifiedMs?: number; signal?: AbortSignal } = {},
  ) {
    return this.#json('PUT /workspaces/{workspace}/files/{path}', {
      params: { workspace, path },
      headers: { ...headersOf(options.condition), ...timeOf(options.modifiedMs) },
      body,
      signal: options.signal,
    });
  }

  beginUpload(workspace: string, path: NodePath, signal?: AbortSignal): Promise<Upload> {
    const params = { workspace };
    return this.#json('POST /workspaces/{workspace}/uploads', { params, body: { path }, signal });
  }

  describeUpload(workspace: string, upload: string, signal?: AbortSignal): Promise<Upload> {
    const params = { workspace, upload };
    return this.#json('GET /workspaces/{workspace}/uploads/{upload}', { params, signal });
  }

  continueUpload(
    workspace: string,
    upload: string,
    offset: number,
    body: Blob,
    signal?: AbortSignal,
  ): Promise<Upload> {
    return this.#json('PATCH /workspaces/{workspace}/uploads/{upload}', {
      params: { workspace, upload },
      headers: { 'upload-offset': String(offset) },
      body,
      signal,
    });
  }

  commitUpload(
    workspace: string,
    upload: string,
    options: { condition?: Condition; modifiedMs?: number; signal?: AbortSignal } = {},
  ): Promise<Node> {
    return this.#json('POST /workspaces/{workspace}/uploads/{upload}/commit', {
      params: { workspace, upload },
      headers: { ...headersOf(options.condition), ...timeOf(options.modifiedMs) },
      signal: options.signal,
    });
  }

  async endUpload(workspace: string, upload: string): Promise<void> {
    await this.#json('DELETE /workspaces/{workspace}/uploads/{upload}', {
      params: { workspace, upload },
    });
  }
}
