// What somebody drops or chooses: files, and folders with everything in them.

import type { Chosen } from './transfers.svelte.ts';

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
    for (const one of inside) yield* walk(one, [...folders, entry.name]);
  }
}

/** Returns the files of a drop. What was dropped has to be asked for before anything else is awaited. */
export async function chosenOf(data: DataTransfer): Promise<Chosen[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry());
  const files = [...data.files];
  const all: Chosen[] = [];
  if (entries.every((entry) => entry === null)) return chosenFrom(files);
  for (const entry of entries) {
    if (entry) for await (const chosen of walk(entry, [])) all.push(chosen);
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
