// A folder that somebody has picked. The browser writes a file aside and puts it in its place whole; where it can move files, what is
// replaced or removed is moved into the trash first, and looked at there: whatever was written to it up to that moment is seen.

import { folderOf, lastOf } from './engine.ts';
import { isMismatch, isMissing, move, statOf } from './entries.ts';
import { TRASH } from './names.ts';
import { isPart, newPart } from './parts.ts';
import type { Local, Stat } from './plan.ts';
import { Changed, Refused, RootGone, type Disk, type Part, type Tree } from './ports.ts';
import { scanInto } from './scan.ts';
import { isSameStat } from './stats.ts';

export class DirectoryDisk implements Disk {
  constructor(
    readonly root: FileSystemDirectoryHandle,
    readonly now: () => number = Date.now,
  ) {}

  async scan(signal: AbortSignal): Promise<Tree<Local>> {
    const tree: Tree<Local> = { found: new Map(), skipped: new Map() };
    try {
      await scanInto(tree, this.root, '', { signal, now: this.now });
    } catch (error) {
      if (isMissing(error)) throw new RootGone('here');
      throw error;
    }
    return tree;
  }

  async #folder(path: string): Promise<FileSystemDirectoryHandle> {
    let folder = this.root;
    try {
      for (const name of path === '' ? [] : path.split('/')) {
        folder = await folder.getDirectoryHandle(name);
      }
    } catch (error) {
      if (isMissing(error) || isMismatch(error)) throw new Changed('here');
      throw error;
    }
    return folder;
  }

  async #find(
    folder: FileSystemDirectoryHandle,
    name: string,
  ): Promise<FileSystemFileHandle | null> {
    try {
      return await folder.getFileHandle(name);
    } catch (error) {
      if (isMissing(error)) return null;
      if (isMismatch(error)) throw new Refused('clash');
      // A name that this system does not take.
      if (error instanceof TypeError) throw new Refused('name');
      throw error;
    }
  }

  /** A file that is what the plan knew of. */
  async #expected(path: string, expected: Stat) {
    const folder = await this.#folder(folderOf(path));
    const handle = await this.#find(folder, lastOf(path));
    if (!handle || !isSameStat(await handle.getFile(), expected)) throw new Changed('here');
    return { folder, handle };
  }

  async file(path: string): Promise<File | null> {
    try {
      const folder = await this.#folder(folderOf(path));
      return (await (await this.#find(folder, lastOf(path)))?.getFile()) ?? null;
    } catch (error) {
      if (isMissing(error) || error instanceof Changed || error instanceof Refused) return null;
      throw error;
    }
  }

  async makeFolder(path: string): Promise<void> {
    const folder = await this.#folder(folderOf(path));
    await this.#refuseTaken(folder, lastOf(path));
    await folder.getDirectoryHandle(lastOf(path), { create: true });
  }

  /** Refuses a name that something has which the scan knows under another one, as where large and small letters are the same. */
  async #refuseTaken(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
    try {
      await folder.getDirectoryHandle(name);
    } catch (error) {
      if (isMissing(error)) return;
      if (error instanceof TypeError && !isMismatch(error)) throw new Refused('name');
      if (!isMismatch(error)) throw error;
    }
    throw new Refused('taken');
  }

  #trash(): Promise<FileSystemDirectoryHandle> {
    return this.root.getDirectoryHandle(TRASH, { create: true });
  }

  async receive(
    name: string,
    content: ReadableStream<Uint8Array<ArrayBuffer>>,
    signal: AbortSignal,
  ): Promise<Part> {
    try {
      return await this.#receive(newPart(name), content, signal);
    } catch (error) {
      // What nobody reads holds its connection, and a browser has few.
      await content.cancel().catch(() => undefined);
      throw error;
    }
  }

  async #receive(
    name: string,
    content: ReadableStream<Uint8Array<ArrayBuffer>>,
    signal: AbortSignal,
  ): Promise<Part> {
    const trash = await this.#trash();
    const drop = () => trash.removeEntry(name);
    const handle = await trash.getFileHandle(name, { create: true }).catch((error: unknown) => {
      // This system does not take its ending.
      throw error instanceof TypeError ? new Refused('name') : error;
    });
    try {
      await content.pipeTo(await handle.createWritable(), { signal });
      return { file: await handle.getFile(), drop };
    } catch (error) {
      await drop().catch(() => undefined);
      throw error;
    }
  }

  /** Removes what was on its way when an earlier page ended. Nobody else may be at work. */
  async clear(): Promise<void> {
    try {
      const trash = await this.root.getDirectoryHandle(TRASH);
      for await (const name of trash.keys()) if (isPart(name)) await trash.removeEntry(name);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  async place(part: Part, path: string, expected: Stat | null): Promise<Stat> {
    const trash = await this.#trash();
    const name = lastOf(path);
    if (expected) return this.#replace(part, trash, path, expected);
    const folder = await this.#folder(folderOf(path));
    await this.#refuseTaken(folder, name);
    return this.#put(part, trash, folder, name);
  }

  /** Puts a part where nothing is. */
  async #put(
    part: Part,
    trash: FileSystemDirectoryHandle,
    folder: FileSystemDirectoryHandle,
    name: string,
  ): Promise<Stat> {
    if (await move(await trash.getFileHandle(part.file.name), folder, name))
      return statOf(part.file);
    const stat = await this.#copyTo(folder, name, part.file);
    await part.drop();
    return stat;
  }

  /** Copies a file to where nothing is, by way of an empty one that nobody else may have written to by the end. */
  async #copyTo(folder: FileSystemDirectoryHandle, name: string, file: File): Promise<Stat> {
    const handle = await folder.getFileHandle(name, { create: true });
    const empty = statOf(await handle.getFile());
    if (empty.size > 0) throw new Refused('taken');
    try {
      return await this.#exchange(handle, file, empty);
    } catch (error) {
      // It would be taken for a file of somebody's.
      const isUntouched = await handle
        .getFile()
        .then((now) => isSameStat(now, empty))
        .catch(() => false);
      if (isUntouched) await folder.removeEntry(name).catch(() => undefined);
      throw error;
    }
  }

  /** Writes what is to be in a file beside it, and puts it there whole, if the file still is what is expected. */
  async #exchange(handle: FileSystemFileHandle, file: File, expected: Stat): Promise<Stat> {
    const writable = await handle.createWritable();
    try {
      await file.stream().pipeTo(writable, { preventClose: true });
      // The last look before both are exchanged, which is one step of the file system.
      if (!isSameStat(await handle.getFile(), expected)) throw new Changed('here');
      await writable.close();
    } catch (error) {
      await writable.abort().catch(() => undefined);
      throw error;
    }
    return statOf(await handle.getFile());
  }

  async #replace(
    part: Part,
    trash: FileSystemDirectoryHandle,
    path: string,
    expected: Stat,
  ): Promise<Stat> {
    const { folder, handle } = await this.#expected(path, expected);
    const old = `old-${part.file.name}`;
    if (await move(handle, trash, old)) {
      await this.#checkMoved(trash, old, folder, lastOf(path), expected);
      // An editor that saves by another file may have put that there meanwhile: it is as good as an edit, and what was moved aside is an older version.
      await this.#refuseTaken(folder, lastOf(path));
      const stat = await this.#put(part, trash, folder, lastOf(path));
      // The server has this version, unless some program still had it open and wrote to it.
      const replaced = await trash.getFileHandle(old);
      if (isSameStat(await replaced.getFile(), expected)) await trash.removeEntry(old);
      return stat;
    }
    const stat = await this.#exchange(handle, part.file, expected);
    await part.drop();
    return stat;
  }

  /** What was written to at the last moment goes back. */
  async #checkMoved(
    trash: FileSystemDirectoryHandle,
    old: string,
    folder: FileSystemDirectoryHandle,
    name: string,
    expected: Stat,
  ): Promise<void> {
    const handle = await trash.getFileHandle(old);
    if (isSameStat(await handle.getFile(), expected)) return;
    // Where something else has the name by now, both stay.
    await this.#refuseTaken(folder, name);
    await move(handle, folder, name);
    throw new Changed('here');
  }

  async move(path: string, to: string, expected: Stat): Promise<void> {
    const { folder, handle } = await this.#expected(path, expected);
    const target = await this.#folder(folderOf(to));
    await this.#refuseTaken(target, lastOf(to));
    await this.#relocate(handle, folder, lastOf(path), target, lastOf(to), expected);
  }

  /** Moves a file, or copies it and removes it then, if it is still the same. */
  async #relocate(
    handle: FileSystemFileHandle,
    from: FileSystemDirectoryHandle,
    name: string,
    folder: FileSystemDirectoryHandle,
    to: string,
    expected: Stat,
  ): Promise<void> {
    if (await move(handle, folder, to)) {
      await this.#checkMoved(folder, to, from, name, expected);
      return;
    }
    await this.#copyTo(folder, to, await handle.getFile());
    if (!isSameStat(await handle.getFile(), expected)) {
      await folder.removeEntry(to);
      throw new Changed('here');
    }
    await from.removeEntry(name);
  }

  async remove(path: string, expected: Stat): Promise<void> {
    const { folder, handle } = await this.#expected(path, expected);
    let trash = await this.#trash();
    const day = new Date(this.now()).toISOString().slice(0, 10);
    for (const name of [day, ...folderOf(path).split('/')]) {
      if (name !== '') trash = await trash.getDirectoryHandle(name, { create: true });
    }
    let name = lastOf(path);
    for (let number = 2; await this.#find(trash, name); number++)
      name = `${number} ${lastOf(path)}`;
    await this.#relocate(handle, folder, lastOf(path), trash, name, expected);
  }

  async removeFolder(path: string): Promise<void> {
    const folder = await this.#folder(folderOf(path));
    try {
      // A file that has its name by now would go as an empty folder does.
      await folder.getDirectoryHandle(lastOf(path));
      await folder.removeEntry(lastOf(path));
    } catch (error) {
      const isFull = error instanceof DOMException && error.name === 'InvalidModificationError';
      if (isFull) throw new Refused('not-empty');
      if (isMismatch(error)) throw new Changed('here');
      if (!isMissing(error)) throw error;
    }
  }
}
