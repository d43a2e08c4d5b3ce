// Bytes that go to the server piece by piece, and after a broken connection from where the server has them: those of a file, or of a delta.

import { NoConnection, ProblemError, type SynclineClient, type Upload } from '@syncline/api';

export const PIECE_LENGTH = 4 * 1024 * 1024;

/** The server is still at something that was cut off here: it takes in a piece, or puts what has come. */
export class StillComing extends Error {
  override readonly name = 'StillComing';
}

/** The server does not know a delta any more: it has ended there, or was put, and the answer was lost. */
export class DeltaEnded extends Error {
  override readonly name = 'DeltaEnded';

  constructor(readonly problem: ProblemError) {
    super('the delta has ended', { cause: problem });
  }
}

/** Whether the same may work in a moment. */
export function isPassing(error: unknown): boolean {
  if (error instanceof StillComing || error instanceof DeltaEnded) return true;
  return error instanceof NoConnection || (error instanceof ProblemError && error.isPassing);
}

export function hasCode(error: unknown, code: string): error is ProblemError {
  return error instanceof ProblemError && error.code === code;
}

async function unlessComing<Answer>(asking: Promise<Answer>): Promise<Answer> {
  try {
    return await asking;
  } catch (error) {
    throw hasCode(error, 'conflict') ? new StillComing('it is still coming') : error;
  }
}

/** Asks how far an upload is. */
export function askState(
  client: SynclineClient,
  workspace: string,
  upload: string,
  signal: AbortSignal,
): Promise<Upload> {
  return unlessComing(client.describeUpload(workspace, upload, signal));
}

/** Waits for what puts an upload; throws [StillComing] where an earlier request for that has not ended. */
export async function unlessPutting<Answer>(
  putting: Promise<Answer>,
  asking: () => Promise<Upload>,
): Promise<Answer> {
  try {
    return await putting;
  } catch (error) {
    // Something else may stand in the way, too; only of an upload that is at work nothing is told.
    if (hasCode(error, 'conflict')) await asking();
    throw error;
  }
}

/** Sends what an upload lacks of some bytes; `onConfirmed` hears how much the server has. */
export async function sendPieces(
  client: SynclineClient,
  workspace: string,
  { id, offset }: Upload,
  bytes: Blob,
  onConfirmed: (offset: number) => void,
  signal: AbortSignal,
): Promise<void> {
  onConfirmed(offset);
  while (offset < bytes.size) {
    const piece = bytes.slice(offset, offset + PIECE_LENGTH);
    const taking = client.continueUpload(workspace, id, offset, piece, signal);
    ({ offset } = await unlessComing(taking));
    onConfirmed(offset);
  }
}
