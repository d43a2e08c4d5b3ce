/** What can fail: the codes of `crates/wasm/src/failure.rs`, and `locked`, `pairing_unknown`, `pairing_ended`, `pairing_expired`, `no_identity`, `no_envelope`, `older_history`, `other_history`, `unsupported` and `broken` of this side. */
export const CODES = [
  'read',
  'write',
  'invalid_chunk_size',
  'too_many_chunks',
  'too_much_to_archive',
  'chunk_hash',
  'content_size',
  'is_sealed',
  'not_sealed',
  'wrong_key',
  // One that is to be is too short.
  'passphrase',
  'key_cost',
  'unknown_epoch',
  'not_next',
  'forked',
  'missing',
  'tampered',
  'content',
  'message',
  'message_length',
  'unexpected_message',
  'wrong_session',
  'wrong_workspace',
  'too_large',
  'out_of_range',
  'no_such',
  'invalid',
  'length',
  'unverified',
  'wrong_base',
  'too_different',
  'wrong_password',
  'password',
  'memory',
  // What is there is not what somebody has seen, has the name, or belongs to a workspace of its own.
  'changed',
  'taken',
  'name',
  'mounted',
  'into_itself',
  // A commit was taken by the server, and is not in the log; counts for nothing; or has to be made anew.
  'not_kept',
  'dropped',
  'void',
  'fenced',
  'busy',
  // The keys were overwritten, and somebody has to unlock the workspace again.
  'locked',
  // What a workspace of somebody else wants: an identity, keys that are sealed to it, and leave to write.
  'no_identity',
  'identity_changed',
  'no_envelope',
  'not_for_us',
  'read_only',
  // A code of a pairing that has a slip in it; that nobody waits for; that another device has used; whose other side has left, or has not
  // answered in time.
  'pairing_code',
  'pairing_unknown',
  'pairing_used',
  'pairing_ended',
  'pairing_expired',
  // The server shows an older history than it has shown here before, or another one.
  'older_history',
  'other_history',
  // This browser cannot run the core.
  'unsupported',
  // A defect: the worker that had it is gone, and the next job gets a new one.
  'broken',
] as const;

export type CoreErrorCode = (typeof CODES)[number];

/** How an error crosses from a worker to the page. */
export interface Failed {
  code: CoreErrorCode;
  message: string;
  isRetryable: boolean;
}

/** Something that the core could not do. */
export class CoreError extends Error {
  override readonly name = 'CoreError';
  readonly code: CoreErrorCode;
  /** Whether the same call may succeed later: after a failed read, or where the base has changed meanwhile. */
  readonly isRetryable: boolean;

  constructor({ code, message, isRetryable }: Failed) {
    super(message);
    this.code = code;
    this.isRetryable = isRetryable;
  }
}

/** A file that cannot be read ends what it was to be a part of. */
export class FileUnreadable extends Error {
  override readonly name = 'FileUnreadable';

  /** `path` says which file it is, and `cause` why. */
  constructor(
    readonly path: string,
    override readonly cause: unknown,
  ) {
    super(`${path} cannot be read`);
  }
}

/** Reads whatever was thrown in a worker. */
export function failedOf(error: unknown): Failed {
  const message = error instanceof Error ? error.message : String(error);
  const { code, isRetryable } = (error ?? {}) as Partial<Failed>;
  const known = CODES.find((one) => one === code);
  if (known) return { code: known, message, isRetryable: isRetryable === true };
  // A blob whose file was changed or taken away.
  if (error instanceof DOMException) return { code: 'read', message, isRetryable: true };
  return { code: 'broken', message, isRetryable: false };
}
