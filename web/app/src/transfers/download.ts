// One file on its way to the disk. Where the browser can write to a file, a large one goes straight there; else it is gathered first, which
// browsers do on disk, too.

import { NoConnection, type FileAnswer } from '@syncline/api';

export const DIRECT_LENGTH_MIN = 64 * 1024 * 1024;

export interface DownloadJob {
  name: string;
  /** Asks for the content. */
  read: (signal: AbortSignal) => Promise<FileAnswer>;
  /** Where it goes; the folder for downloads where there is none. */
  target: FileSystemFileHandle | null;
}

export interface DownloadHooks {
  onProgress: (received: number) => void;
  /** Hears how much there is in all, where the answer says so. */
  onSize?: (size: number) => void;
}

interface SavePicker {
  showSaveFilePicker(options: { suggestedName: string }): Promise<FileSystemFileHandle>;
}

/** Asks where a large file shall go, if the browser can; throws an `AbortError` where the person gives up. */
export async function pickTarget(
  name: string,
  size: number | null,
): Promise<FileSystemFileHandle | null> {
  if (size === null || size < DIRECT_LENGTH_MIN || !('showSaveFilePicker' in window)) return null;
  try {
    return await (window as Window & SavePicker).showSaveFilePicker({ suggestedName: name });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    // It asks only right after somebody did something, and the server was asked in between.
    return null;
  }
}

/** Downloads a file; `save` gets what was gathered. */
export async function download(
  job: DownloadJob,
  { onProgress, onSize }: DownloadHooks,
  signal: AbortSignal,
  save: (content: Blob, name: string) => void = saveAs,
): Promise<void> {
  const { body, size } = await job.read(signal);
  if (size !== null) onSize?.(size);
  let received = 0;
  // What went wrong in the stream: who gathers it hears a mere `TypeError`.
  let failure: unknown;
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        received += value.length;
        onProgress(received);
        controller.enqueue(value);
      } catch (error) {
        failure = error;
        throw error;
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  try {
    if (job.target) {
      await counted.pipeTo(await job.target.createWritable(), { signal });
    } else {
      const content = await new Response(counted).blob();
      signal.throwIfAborted();
      if (size === null || content.size === size) save(content, job.name);
    }
  } catch (error) {
    const reason = failure ?? error;
    if (signal.aborted || !(reason instanceof TypeError)) throw reason;
    throw new NoConnection(reason);
  }
  if (size !== null && received !== size) throw new NoConnection('the answer broke off');
}

function saveAs(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
