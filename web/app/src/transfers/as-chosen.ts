// Whether a file is still what it was when somebody chose it.

/** The file is not what it was when it was chosen, or is gone: what is on the disk by now may be half of one and half of another. */
export class FileChanged extends Error {
  override readonly name = 'FileChanged';
  readonly code = 'file_changed';

  constructor() {
    super('the file has changed since it was chosen');
  }
}

/** Whether a file still is what it was: a browser refuses to read one that has changed. */
export async function isAsChosen(file: Blob): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/**
 * A small file as it is now, in memory: what a program saves while it is on its way makes no difference. Throws [FileChanged] where one has
 * saved while it was read.
 */
export async function readWhole(file: Blob): Promise<Blob> {
  const bytes = await file.arrayBuffer().catch(() => null);
  if (!bytes || !(await isAsChosen(file))) throw new FileChanged();
  return new Blob([bytes]);
}
