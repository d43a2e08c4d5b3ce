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

interface SavePicker {
  showSaveFilePicker(options: { suggestedName: string }): Promise<FileSystemFileHandle>;
}

/** Asks where a large file shall go, if the browser can; throws an `AbortError` where the person gives up. */
export async function pickTarget(name: string, size: number): Promise<FileSystemFileHandle | null> {
  if (size < DIRECT_LENGTH_MIN || !('showSaveFilePicker' in window)) return null;
  return (window as Window & SavePicker).showSaveFilePicker({ suggestedName: name });
}

/** Downloads a file; `save` gets what was gathered. */
export async function download(
  job: DownloadJob,
  onProgress: (received: number) => void,
  signal: AbortSignal,
  save: (content: Blob, name: string) => void = saveAs,
): Promise<void> {
  const { body, size } = await job.read(signal);
  let received = 0;
  const counted = body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        received += chunk.length;
        onProgress(received);
        controller.enqueue(chunk);
      },
    }),
  );
  try {
    if (job.target) {
      await counted.pipeTo(await job.target.createWritable(), { signal });
    } else {
      const content = await new Response(counted).blob();
      signal.throwIfAborted();
      if (size === null || content.size === size) save(content, job.name);
    }
  } catch (error) {
    if (signal.aborted || !(error instanceof TypeError)) throw error;
    throw new NoConnection(error);
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
