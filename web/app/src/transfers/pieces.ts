// Bytes that go to the server piece by piece, and after a broken connection from where the server has them: those of a file, or of a delta.

import { NoConnection, ProblemError, type SynclineClient, type Upload } from '@syncline/api';

export const PIECE_LENGTH = 4 * 1024 * 1024;

/** How long and how often what was cut off here is waited for at the server: a large file is put there for minutes. */
const COMING_MS = 2000;
const COMING_MAX = 300;

type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

/** The server is still taking in a piece that was cut off here. */
class StillComing extends Error {
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

/** Asks how far an upload is, and waits while the server is at something of it that was cut off here. */
export async function askState(
  client: SynclineClient,
  workspace: string,
  upload: string,
  wait: Wait,
  signal: AbortSignal,
): Promise<Upload> {
  for (let times = 1; ; times++) {
    try {
      return await client.describeUpload(workspace, upload, signal);
    } catch (error) {
      if (!hasCode(error, 'conflict') || times === COMING_MAX) throw error;
    }
    await wait(COMING_MS, signal);
    signal.throwIfAborted();
  }
}

/** Has an upload put. Where an earlier request for that has not ended it is waited for, and looked what it has left. */
export async function putUpload<Answer>(
  put: () => Promise<Answer>,
  asking: () => Promise<Upload>,
): Promise<Answer> {
  try {
    return await put();
  } catch (error) {
    if (!hasCode(error, 'conflict')) throw error;
    await asking();
    // It was refused, as for want of room, or something else stands in the way: that is heard now.
    return put();
  }
}

async function unlessComing(taking: Promise<Upload>): Promise<Upload> {
  try {
    return await taking;
  } catch (error) {
    throw hasCode(error, 'conflict') ? new StillComing('a piece is still coming') : error;
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
