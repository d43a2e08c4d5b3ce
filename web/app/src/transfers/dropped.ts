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

async function* walk(entry: FileSystemEntry, folders: string[]): AsyncGenerator<Chosen> {
  if (entry.isFile) {
    yield { file: await fileOf(entry as FileSystemFileEntry), folders };
  } else if (entry.isDirectory) {
    const inside = await entriesOf(entry as FileSystemDirectoryEntry);
    const here = [...folders, entry.name];
    if (inside.length === 0) yield { file: null, folders: here };
    for (const one of inside) yield* walk(one, here);
  }
}

async function* walkHandles(
  handle: FileSystemHandle,
  folders: string[],
  root: FileSystemHandle,
): AsyncGenerator<Chosen> {
  if (handle.kind === 'file') {
    const found = handle as FileSystemFileHandle;
    yield { file: await found.getFile(), folders, handle: found, root };
    return;
  }
  const here = [...folders, handle.name];
  let isEmpty = true;
  for await (const inside of (handle as FileSystemDirectoryHandle).values()) {
    isEmpty = false;
    yield* walkHandles(inside, here, root);
  }
  if (isEmpty) yield { file: null, folders: here };
}

async function gather(from: AsyncGenerator<Chosen>): Promise<Chosen[]> {
  const all: Chosen[] = [];
  for await (const chosen of from) all.push(chosen);
  return all;
}

/** Returns what was dropped. It has to be asked for before anything else is awaited. */
export async function chosenOf(data: DataTransfer): Promise<Chosen[]> {
  const items = [...data.items]
    .filter(({ kind }) => kind === 'file')
    .map((item) => ({
      entry: item.webkitGetAsEntry(),
      file: item.getAsFile(),
      handle: (item as HandleItem).getAsFileSystemHandle?.().catch(() => null),
    }));
  const all: Chosen[] = [];
  for (const { entry, file, handle: asked } of items) {
    const handle = (await asked) ?? null;
    if (handle) all.push(...(await gather(walkHandles(handle, [], handle))));
    else if (entry) all.push(...(await gather(walk(entry, []))));
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
export async function pickFiles(): Promise<Chosen[]> {
  const picker = window as unknown as FilePicker;
  try {
    const handles = await picker.showOpenFilePicker({ multiple: true });
    return (await Promise.all(handles.map((one) => gather(walkHandles(one, [], one))))).flat();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return [];
    throw error;
  }
}
