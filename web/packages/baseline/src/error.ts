export type BaselineErrorCode =
  /** What a server said is no message of the kind. */
  | 'message'
  /** It is one of another session. */
  | 'wrong_session';

/** Something that the server said cannot be gone on with. */
export class BaselineError extends Error {
  override readonly name = 'BaselineError';

  constructor(
    readonly code: BaselineErrorCode,
    message: string,
  ) {
    super(message);
  }
}
