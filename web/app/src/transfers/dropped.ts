// What somebody drops or chooses: files, and folders with everything in them. Where the browser has handles they come along: by them a file
// is found again after the page was loaded anew.

export interface Chosen {
  /** Nothing where it is a folder with nothing in it. */
  file: File | null;
  /** The folders that it was in, or is. */
  folders: string[];
  handle?: FileSystemFileHandle | null;
  /** What was chosen itself: the file, or a folder that it is in. */
  root?: FileSystemHandle | null;
}

interface HandleItem {
  getAsFileSystemHandle?: () => Promise<FileSystemHandle | null>;
}

interface FilePicker {
  showOpenFilePicker(options: { multiple: boolean }): Promise<FileSystemFileHandle[]>;
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** Reads a folder; browsers hand out a hundred entries at once. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return all;
    all.push(...some);
  }
}

/** Hears what cannot be read: it is left out, and all else is chosen. */
export type OnUnreadable = (path: string) => void;

async function* walk(
  entry: FileSystemEntry,
  folders: string[],
  onUnreadable: OnUnreadable,
): AsyncGenerator<Chosen> {
  const here = [...folders, entry.name];
  const leaveOut = () => void onUnreadable(here.join('/'));
  if (entry.isFile) {
    const file = await fileOf(entry as FileSystemFileEntry).catch(leaveOut);
    if (file) yield { file, folders };
  } else if (entry.isDirectory) {
    const inside = await entriesOf(entry as FileSystemDirectoryEntry).catch(leaveOut);
    if (inside?.length === 0) yield { file: null, folders: here };
    for (const one of inside ?? []) yield* walk(one, here, onUnreadable);
  }
}

async function* walkHandles(
  handle: FileSystemHandle,
  folders: string[],
  root: FileSystemHandle,
  onUnreadable: OnUnreadable,
): AsyncGenerator<Chosen> {
  const here = [...folders, handle.name];
  const leaveOut = () => void onUnreadable(here.join('/'));
  if (handle.kind === 'file') {
    const found = handle as FileSystemFileHandle;
    const file = await found.getFile().catch(leaveOut);
    if (file) yield { file, folders, handle: found, root };
    return;
  }
  const all = gather((handle as FileSystemDirectoryHandle).values());
  const inside = await all.catch(leaveOut);
  if (inside?.length === 0) yield { file: null, folders: here };
  for (const one of inside ?? []) yield* walkHandles(one, here, root, onUnreadable);
}

async function gather<One>(from: AsyncIterable<One>): Promise<One[]> {
  const all: One[] = [];
  for await (const one of from) all.push(one);
  return all;
}

/** Returns what was dropped. It has to be asked for before anything else is awaited. */
export async function chosenOf(data: DataTransfer, onUnreadable: OnUnreadable): Promise<Chosen[]> {
  const items = [...data.items]
    .filter(({ kind }) => kind === 'file')
    .map((item) => ({
      entry: item.webkitGetAsEntry(),
      file: item.getAsFile(),
      handle: (item as HandleItem).getAsFileSystemHandle?.().catch(() => null),
    }));
  let all: Chosen[] = [];
  for (const { entry, file, handle: asked } of items) {
    const handle = (await asked) ?? null;
    if (handle) all = all.concat(await gather(walkHandles(handle, [], handle, onUnreadable)));
    else if (entry) all = all.concat(await gather(walk(entry, [], onUnreadable)));
    else if (file) all.push({ file, folders: [] });
  }
  return all;
}

/** Returns files of a picker; those of a folder say where they were in it. */
export function chosenFrom(files: Iterable<File>): Chosen[] {
  return [...files].map((file) => {
    const folders = file.webkitRelativePath.split('/').slice(0, -1);
    return { file, folders };
  });
}

/** Whether the browser has a picker whose files are found again later. */
export function hasPicker(): boolean {
  return 'showOpenFilePicker' in window;
}

/** Asks for files; returns none where the person gives up. */
export async function pickFiles(onUnreadable: OnUnreadable): Promise<Chosen[]> {
  const picker = window as unknown as FilePicker;
  try {
    const handles = await picker.showOpenFilePicker({ multiple: true });
    const walks = handles.map((one) => gather(walkHandles(one, [], one, onUnreadable)));
    return (await Promise.all(walks)).flat();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return [];
    throw error;
  }
}
