import type { Problem } from './schema.ts';

/** What the server refused, as a problem document (RFC 9457) with a stable `code`. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';

  constructor(
    readonly problem: Problem,
    /** The version that is there, where that was the reason. */
    readonly etag: string | null = null,
    /** After how many seconds to ask again. */
    readonly retryAfter: number | null = null,
  ) {
    super(problem.detail || problem.title);
  }

  get code(): string {
    return this.problem.code;
  }

  /** Whether the same request may succeed later. */
  get isPassing(): boolean {
    return this.problem.status === 503 || this.problem.status === 429;
  }

  /** What is refused here, before anything is sent. */
  static here(code: string, detail: string, status = 409): ProblemError {
    return new ProblemError({ type: 'about:blank', title: detail, detail, code, status });
  }

  static async of(response: Response): Promise<ProblemError> {
    const after = Number(response.headers.get('retry-after'));
    const problem = await readProblem(response);
    return new ProblemError(problem, response.headers.get('etag'), after > 0 ? after : null);
  }
}

/** The server was not reached, or the answer broke off. */
export class NoConnection extends Error {
  override readonly name = 'NoConnection';

  constructor(cause: unknown) {
    super('the server was not reached', { cause });
  }
}

/** Reads the document; what a proxy in between answers is none. */
async function readProblem(response: Response): Promise<Problem> {
  const type = response.headers.get('content-type') ?? '';
  const found: unknown = type.startsWith('application/problem+json')
    ? await response.json().catch(() => null)
    : null;
  const known = typeof found === 'object' && found !== null ? found : {};
  const title = response.statusText || `status ${response.status}`;
  return {
    type: 'about:blank',
    title,
    detail: title,
    code: 'unknown',
    ...known,
    status: response.status,
  };
}
