// What lies behind a link, for somebody who has its secret and needs no account.

import {
  nameOf,
  ProblemError,
  ROOT,
  SynclineClient,
  type FileAnswer,
  type NodePath,
  type PublicLine,
  type PublicLink,
} from '@syncline/api';
import type { Listed } from '../files/kinds.ts';

export type Stage = 'loading' | 'open' | 'locked' | 'gone' | 'failed';

function listed({ kind, name, path, size, modified }: PublicLine): Listed {
  return {
    kind: kind ?? 'folder',
    name: name ?? nameOf(path),
    path,
    size,
    modified,
    target: null,
    is_conflict: false,
    mounted: null,
  };
}

function answerOf(response: Response): FileAnswer {
  const length = response.headers.get('content-length');
  return {
    body: response.body ?? new Blob([]).stream(),
    size: length === null ? null : Number(length),
  };
}

export class Visit {
  stage = $state<Stage>('loading');
  link = $state.raw<PublicLink>();
  /** What is in the folder that is shown. */
  rows = $state.raw<Listed[]>([]);
  failure = $state.raw<unknown>();
  /** Whether the pass of the password was refused after it had counted. */
  wasOpen = $state(false);

  #pass: string | null = null;
  #reading = new AbortController();

  constructor(
    readonly secret: string,
    /** It shows no token: nobody who is signed in is known behind a link. */
    readonly client = new SynclineClient(),
  ) {}

  get #asking() {
    const headers: Record<string, string> = {};
    if (this.#pass !== null) headers['syncline-link-pass'] = this.#pass;
    return { params: { secret: encodeURIComponent(this.secret) }, headers };
  }

  /** Asks what is there, and for a folder what is in it. */
  async open(path: NodePath): Promise<void> {
    this.#reading.abort();
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    if (this.stage !== 'open') this.stage = 'loading';
    try {
      const link = await this.client.call('GET /public/{secret}', { ...this.#asking, signal });
      if (link.needs_password) {
        this.#lock();
        return;
      }
      const rows = link.kind === 'folder' ? await this.#list(path, signal) : [];
      [this.link, this.rows, this.stage] = [link, rows, 'open'];
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  async #list(path: NodePath, signal: AbortSignal): Promise<Listed[]> {
    const { params, headers } = this.#asking;
    const rows: Listed[] = [];
    let next: string | undefined;
    do {
      const query = { start_after: next };
      const page =
        path === ROOT
          ? await this.client.call('GET /public/{secret}/folders', {
              ...this.#asking,
              query,
              signal,
            })
          : await this.client.call('GET /public/{secret}/folders/{path}', {
              params: { ...params, path },
              headers,
              query,
              signal,
            });
      rows.push(...page.nodes.map(listed));
      next = page.next ?? undefined;
    } while (next !== undefined);
    return rows;
  }

  /** Shows the password; throws where it is wrong, or tried too often. `path` says where somebody is once it was right. */
  async unlock(password: string, path: () => NodePath): Promise<void> {
    const { params } = this.#asking;
    const found = await this.client.call('POST /public/{secret}/unlock', {
      params,
      body: { password },
    });
    this.#pass = found.pass;
    await this.open(path());
  }

  /** Asks for a file; for that of the link itself where there is no path. */
  content(path: NodePath, signal: AbortSignal): Promise<FileAnswer> {
    return this.#read('content', path, signal);
  }

  /** Asks for a folder with everything in it, as a ZIP file. */
  archive(path: NodePath, signal: AbortSignal): Promise<FileAnswer> {
    return this.#read('archive', path, signal);
  }

  /** A name for what is saved of a folder, whose own name may be nobody's business. */
  archiveName(path: NodePath, fallback: string): string {
    return `${path === ROOT ? (this.link?.name ?? fallback) : nameOf(path)}.zip`;
  }

  async #read(what: 'content' | 'archive', path: NodePath, signal: AbortSignal) {
    const { params, headers } = this.#asking;
    try {
      const answer =
        path === ROOT
          ? await this.client.ask(`GET /public/{secret}/${what}`, { params, headers, signal })
          : await this.client.ask(`GET /public/{secret}/${what}/{path}`, {
              params: { ...params, path },
              headers,
              signal,
            });
      return answerOf(answer);
    } catch (error) {
      // Nothing more is shown of what is not there any more.
      const isOver =
        error instanceof ProblemError && ['link_locked', 'link_gone'].includes(error.code);
      if (isOver) this.#fail(error);
      throw error;
    }
  }

  #lock(): void {
    this.wasOpen = this.#pass !== null;
    this.#pass = null;
    this.stage = 'locked';
  }

  #fail(error: unknown): void {
    const code = error instanceof ProblemError ? error.code : '';
    if (code === 'link_locked') return this.#lock();
    this.stage = code === 'link_gone' ? 'gone' : 'failed';
    this.failure = error;
  }
}
