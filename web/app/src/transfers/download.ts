// One file on its way to the disk. Where the browser can write to a file, a large one goes straight there; else it is gathered first, in the
// private file system of the browser where there is room, and in blobs else, which browsers keep as they like.

import { NoConnection, type FileAnswer, type Place } from '@syncline/api';
import { inTurns } from './in-turns.ts';
import { forgetScratchFile, openScratchFile, rememberWhole, type OpenFile } from './scratch.ts';

/** What is shorter is gathered in blobs. */
const DIRECT_LENGTH_MIN = 64 * 1024 * 1024;
/** What is gathered is handed to the browser in such parts. */
const PART_LENGTH = 8 * 1024 * 1024;

export interface DownloadJob {
  name: string;
  /** Asks for the content; from a place in the middle where it has come that far. */
  read: (signal: AbortSignal, from?: Place) => Promise<FileAnswer>;
  /** Where it goes; the folder for downloads where there is none. */
  target: FileSystemFileHandle | null;
  /** Whether `read` can begin in the middle. */
  isResumable?: boolean;
  /** What has come already. */
  kept?: Kept;
  /** What goes on, or ended last. */
  running?: Promise<void>;
  /** Whether it is not to be saved any more. */
  isGivenUp?: boolean;
}

/** What has come of a file, on the disk or gathered. */
interface Kept {
  length: number;
  /** How much there is in all; nothing where nobody knows. */
  size: number | null;
  /** Of which version it is. */
  etag: string | null;
  parts: Blob[];
  /** Where it is written to; nothing for blobs. */
  into: OpenFile | null;
  /** Whether no file took it before. */
  hasNoFile: boolean;
}

const nothingKept = (): Kept => ({
  length: 0,
  size: null,
  etag: null,
  parts: [],
  into: null,
  hasNoFile: false,
});

/** A file took no more. */
class Unwritable extends Error {
  override readonly name = 'Unwritable';
}

export interface DownloadHooks {
  onProgress: (received: number) => void;
  /** Hears how much there is in all, where the answer says so. */
  onSize?: (size: number) => void;
  /** Hears that a large file is gathered by the browser, perhaps in memory. */
  onGathered?: () => void;
}

interface SavePicker {
  showSaveFilePicker(options: { suggestedName: string }): Promise<FileSystemFileHandle>;
}

/** What a folder of this name is called as a ZIP file; what others share is called after them, with a slash. */
export const archiveNameOf = (name: string) => `${name.replaceAll('/', '_')}.zip`;

/** Asks where a large file shall go, if the browser can; throws an `AbortError` where the person gives up. */
export async function pickTarget(
  name: string,
  size: number | null,
): Promise<FileSystemFileHandle | null> {
  if (!isLarge(size) || !('showSaveFilePicker' in window)) return null;
  try {
    return await (window as Window & SavePicker).showSaveFilePicker({ suggestedName: name });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    // It asks only right after somebody did something, and the server was asked in between.
    return null;
  }
}

/** Downloads a file, or what is missing of it; `save` gets what was gathered. */
export function download(
  job: DownloadJob,
  hooks: DownloadHooks,
  signal: AbortSignal,
  save: (content: Blob, name: string) => void = saveAs,
): Promise<void> {
  return alone(job, () => goOn(job, hooks, signal, save));
}

/** Throws away what has come of a file; whoever is at it has been told to stop. */
export function discard(job: DownloadJob): Promise<void> {
  job.isGivenUp = true;
  return alone(job, () => discardKept(job));
}

/** Does something with a job once nobody else is at it: what was halted may still be writing. */
function alone(job: DownloadJob, work: () => Promise<void>): Promise<void> {
  const before = Promise.resolve(job.running).catch(() => undefined);
  job.running = before.then(work);
  return job.running;
}

async function goOn(
  job: DownloadJob,
  hooks: DownloadHooks,
  signal: AbortSignal,
  save: (content: Blob, name: string) => void,
): Promise<void> {
  signal.throwIfAborted();
  const kept = (job.kept ??= nothingKept());
  try {
    // Somebody may have paused it between its last byte and its end.
    if (kept.length !== kept.size) await take(job, kept, hooks, signal);
    if (job.isGivenUp) throw new DOMException('it was given up', 'AbortError');
    await kept.into?.writable.close().catch(refuse);
  } catch (error) {
    if (!(error instanceof Unwritable)) throw signal.aborted ? error : disconnected(error);
    // It begins anew, and elsewhere if it can.
    await discardKept(job);
    job.kept = { ...nothingKept(), hasNoFile: true };
    throw error.cause;
  }
  delete job.kept;
  if (job.target) return;
  if (kept.into) rememberWhole(kept.into.file);
  save((await kept.into?.file.getFile()) ?? new Blob(kept.parts), job.name);
}

/** Takes what is missing. */
async function take(
  job: DownloadJob,
  kept: Kept,
  { onProgress, onSize, onGathered }: DownloadHooks,
  signal: AbortSignal,
): Promise<void> {
  const mayGoOn = job.isResumable === true && kept.length > 0 && kept.etag !== null;
  const start = mayGoOn ? { offset: kept.length, etag: kept.etag ?? '' } : undefined;
  const { body, size, from = 0, etag = null } = await job.read(signal, start);
  const isNext = from === kept.length && (from === 0 || etag === kept.etag);
  if (!isNext) await empty(kept);
  if (from !== kept.length) throw new NoConnection('the answer begins elsewhere');
  kept.etag = etag;
  kept.size = size === null ? null : from + size;
  if (kept.size !== null) onSize?.(kept.size);
  if (kept.length === 0) await findFile(job, kept);
  if (!kept.into && isLarge(kept.size)) onGathered?.();
  await receive(body, kept, onProgress, signal);
  if (kept.size !== null && kept.length !== kept.size)
    throw new NoConnection('the answer broke off');
}

const isLarge = (size: number | null) => size !== null && size >= DIRECT_LENGTH_MIN;

/** What breaks off while it comes. */
const disconnected = (error: unknown) =>
  error instanceof TypeError ? new NoConnection(error) : error;

function refuse(cause: unknown): never {
  throw new Unwritable('', { cause });
}

/** Finds where a file is written to from its beginning on; blobs do without. */
async function findFile({ target: file }: DownloadJob, kept: Kept): Promise<void> {
  const { size } = kept;
  if (kept.into) return;
  if (file) kept.into = { file, writable: await file.createWritable().catch(refuse) };
  else if (size !== null && isLarge(size) && !kept.hasNoFile)
    kept.into = await openScratchFile(size);
}

async function discardKept(job: DownloadJob): Promise<void> {
  const into = job.kept?.into;
  delete job.kept;
  await into?.writable.abort().catch(() => undefined);
  if (into && !job.target) await forgetScratchFile(into.file);
}

async function empty(kept: Kept): Promise<void> {
  await kept.into?.writable.truncate(0).catch(refuse);
  [kept.length, kept.size, kept.parts] = [0, null, []];
}

/** Takes in what comes, and keeps it also where it breaks off. */
async function receive(
  body: FileAnswer['body'],
  kept: Kept,
  onProgress: (received: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const { into } = kept;
  if (!into) return gather(body, kept, onProgress, signal);
  for await (const piece of inTurns(body)) {
    signal.throwIfAborted();
    await into.writable.write(piece).catch(refuse);
    kept.length += piece.length;
    onProgress(kept.length);
  }
}

async function gather(
  body: FileAnswer['body'],
  kept: Kept,
  onProgress: (received: number) => void,
  signal: AbortSignal,
): Promise<void> {
  let gathered: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const settle = () => {
    if (length > 0) kept.parts.push(new Blob(gathered));
    kept.length += length;
    [gathered, length] = [[], 0];
  };
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return;
      gathered.push(value);
      length += value.length;
      if (length >= PART_LENGTH) settle();
      onProgress(kept.length + length);
    }
  } finally {
    settle();
    await reader.cancel().catch(() => undefined);
  }
}

/** Hands bytes to the browser, which saves them where it saves. */
export function saveAs(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
