// What a failure means for a round, and for the folder.

import { NoConnection, ProblemError } from '@syncline/api';
import { FileChanged } from '../transfers/as-chosen.ts';
import { NameClash } from '../transfers/upload.ts';
import { codeOf } from '../words/problem.ts';
import { Changed, Locked, RootGone } from './ports.ts';
import type { State } from './states.ts';

/** What an encrypted workspace says where nothing more is read or written in it. */
const CLOSED = [
  'locked',
  'read_only',
  'unknown_epoch',
  'not_next',
  'forked',
  'older_history',
  'other_history',
  'not_kept',
  'void',
];

/** What is said where something is not there as it was seen. */
const OUTDATED = [
  'precondition_failed',
  'taken',
  'conflict',
  'not_found',
  'wrong_base',
  'no_such',
  'changed',
];

/** Whether the round cannot go on: nobody is there, or somebody said stop. */
export function endsRound(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || error instanceof NoConnection) return true;
  if (error instanceof RootGone || error instanceof Locked) return true;
  if (error instanceof DOMException && error.name === 'NotAllowedError') return true;
  if (error instanceof ProblemError) return error.isPassing || error.code === 'not_signed_in';
  return CLOSED.includes(codeOf(error));
}

/** Whether a file of the folder is not any more what it was when the plan was made. */
export function hasChangedHere(error: unknown): boolean {
  return error instanceof FileChanged || (error instanceof Changed && error.side === 'here');
}

/** Whether the plan was made of what is not so any more. */
export function isOutdated(error: unknown): boolean {
  const meanwhile = [Changed, NameClash, FileChanged];
  if (meanwhile.some((kind) => error instanceof kind)) return true;
  return OUTDATED.includes(codeOf(error));
}

/** How a folder stands after a round that has failed. */
export function stateAfter(error: unknown): State {
  if (error instanceof RootGone) return error.side === 'here' ? 'gone-here' : 'gone-there';
  if (error instanceof DOMException && error.name === 'NotAllowedError') return 'permission';
  // Something has gone while it was listed: it is listed again.
  if (error instanceof Changed) return 'working';
  return error instanceof NoConnection ? 'offline' : 'failed';
}

/** Whether a round is tried again by itself. */
export function isPassing(error: unknown): boolean {
  const isPassing = error instanceof NoConnection || error instanceof Changed;
  return isPassing || (error instanceof ProblemError && error.isPassing);
}
