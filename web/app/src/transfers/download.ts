// One file on its way to the disk. Where the browser can write to a file, a large one goes straight there; else it is gathered first, in the
// private file system of the browser where there is room, and in blobs else, which browsers keep as they like.

import { NoConnection, type FileAnswer, type Place } from '@syncline/api';
import { inTurns } from './in-turns.ts';
import { forgetScratchFile, scratchFile } from './scratch.ts';

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
}

/** What has come of a file, on the disk or gathered. */
interface Kept {
  length: number;
  /** Of which version it is. */
  etag: string | null;
  parts: Blob[];
  /** Where it goes, or is gathered. */
  file: FileSystemFileHandle | null;
  writable: FileSystemWritableFileStream | null;
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
export async function download(
  job: DownloadJob,
  { onProgress, onSize, onGathered }: DownloadHooks,
  signal: AbortSignal,
  save: (content: Blob, name: string) => void = saveAs,
): Promise<void> {
  const kept = (job.kept ??= { length: 0, etag: null, parts: [], file: null, writable: null });
  const mayGoOn = job.isResumable === true && kept.length > 0 && kept.etag !== null;
  const place = mayGoOn ? { offset: kept.length, etag: kept.etag ?? '' } : undefined;
  const { body, size, from = 0, etag = null } = await job.read(signal, place);
  if (from !== kept.length) await empty(kept);
  kept.etag = etag;
  const all = size === null ? null : from + size;
  if (all !== null) onSize?.(all);
  kept.file ??= job.target ?? (await placeFor(kept, all));
  if (kept.file) kept.writable ??= await kept.file.createWritable();
  else if (isLarge(all)) onGathered?.();
  try {
    await receive(body, kept, onProgress, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof TypeError)) throw error;
    throw new NoConnection(error);
  }
  if (all !== null && kept.length !== all) throw new NoConnection('the answer broke off');
  await kept.writable?.close();
  if (!job.target) save((await kept.file?.getFile()) ?? new Blob(kept.parts), job.name);
  delete job.kept;
}

const isLarge = (size: number | null) => size !== null && size >= DIRECT_LENGTH_MIN;

/** Returns where a file of this size is gathered from its beginning on; nothing for blobs. */
async function placeFor(kept: Kept, size: number | null): Promise<FileSystemFileHandle | null> {
  return kept.length === 0 && size !== null && isLarge(size) ? scratchFile(size) : null;
}

/** Throws away what has come of a file. */
export async function discard(job: DownloadJob): Promise<void> {
  const { kept } = job;
  delete job.kept;
  await kept?.writable?.abort().catch(() => undefined);
  if (kept?.file && !job.target) await forgetScratchFile(kept.file);
}

async function empty(kept: Kept): Promise<void> {
  await kept.writable?.truncate(0);
  [kept.length, kept.parts] = [0, []];
}

/** Takes in what comes, and keeps it also where it breaks off. */
async function receive(
  body: FileAnswer['body'],
  kept: Kept,
  onProgress: (received: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const { writable } = kept;
  if (!writable) return gather(body, kept, onProgress, signal);
  for await (const piece of inTurns(body)) {
    signal.throwIfAborted();
    await writable.write(piece);
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
